#include "wire/text.h"

namespace pawl::wire {
namespace {

constexpr std::size_t kShownMax = 32;

}  // namespace

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kShownMax)) out.push_back(c >= 0x20 && c < 0x7F ? c : '?');
  if (text.size() > kShownMax) out.append("...");
  out.push_back('\'');
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

}  // namespace pawl::wire
