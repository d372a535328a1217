#include "drill/picture_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "drill/page_words.h"

namespace pawl::drill {
namespace {

constexpr double kLetter = 7.0;  // of the 12 pixels that letters are high

}  // namespace

double text_width(std::string_view text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;  // not the tail of a character
  });
  return static_cast<double>(letters) * kLetter;
}

std::string fitting(const std::vector<std::string>& choices, double width) {
  for (const std::string& choice : choices) {
    if (text_width(choice) + 8 <= width) return choice;
  }
  return {};
}

std::string text(std::string_view style, double x, double y, std::string_view words) {
  return words.empty() ? std::string()
                       : fmt::format("<text class='{}' x='{:.1f}' y='{:.1f}'>{}</text>\n", style, x,
                                     y, escaped(words));
}

std::string titled(std::string_view words) {
  return fmt::format("<title>{}</title>", escaped(words));
}

}  // namespace pawl::drill
