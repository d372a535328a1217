#include "wire/text.h"

#include <cstdint>

namespace pawl::wire {
namespace {

constexpr std::size_t kShownMax = 32;

// The bytes of the character at the front of `text`, or 0 when it is malformed or a control
// character.
std::size_t plain_character(std::string_view text) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;  // 0 is no continuation byte
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  if (first >= 0xC2 && first <= 0xDF) {
    const bool control = first == 0xC2 && byte(1) < 0xA0;
    return continues(1) && !control ? 2 : 0;
  }
  if ((first & 0xF0) == 0xE0) {
    if (!continues(1) || !continues(2)) return 0;
    const std::uint32_t code = ((first & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code >= 0x800 && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const std::uint32_t code =
        ((first & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6);
    return code >= 0x10000 && code <= 0x10FFFF ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = plain_character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

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
