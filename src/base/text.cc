#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace pawl {
namespace {

bool is_tail(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

// `character` is valid. U+0080 to U+009F are control characters too, and some terminals obey them.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

void append_hex(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// Eight bytes at once. Only a byte that is not printable changes a high bit here, its own or, by a
// borrow, that of a byte behind it.
bool is_printable_ascii(std::uint64_t bytes) {
  constexpr std::uint64_t kEveryByte = 0x0101010101010101;
  const std::uint64_t wrong = bytes | (bytes - 0x20 * kEveryByte) | (bytes + kEveryByte);
  return (wrong & (0x80 * kEveryByte)) == 0;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xc2   ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_tail(at(i))) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (first == 0xe0 && at(1) < 0xa0) return 0;
  if (first == 0xed && at(1) > 0x9f) return 0;
  if (first == 0xf0 && at(1) < 0x90) return 0;
  if (first == 0xf4 && at(1) > 0x8f) return 0;
  return size;
}

// On the path of every command: printable ASCII is checked in words, and without a call.
bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    if (std::uint64_t word = 0; text.size() >= sizeof(word)) {
      std::memcpy(&word, text.data(), sizeof(word));
      if (is_printable_ascii(word)) {
        text.remove_prefix(sizeof(word));
        continue;
      }
    }
    const auto first = static_cast<unsigned char>(text.front());
    if (first >= 0x20 && first < 0x7f) {
      text.remove_prefix(1);
      continue;
    }
    const std::size_t size = utf8_length(text);
    if (size == 0 || is_control(text.substr(0, size))) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    out += size == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    if (size == 0 || is_control(character)) {
      for (const char byte : character) append_hex(out, static_cast<unsigned char>(byte));
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return !is_tail(static_cast<unsigned char>(byte));
  }));
}

std::string wrapped(std::string_view head, std::string_view text, std::size_t indent,
                    std::size_t width) {
  std::string out(head);
  std::size_t at = columns(head);
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!first && at + 1 + columns(word) > width) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
      first = true;
    }
    if (!first) out += ' ', ++at;
    out += word;
    at += columns(word);
    first = false;
  }
  return out;
}

}  // namespace pawl
