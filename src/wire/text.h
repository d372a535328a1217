// Small questions about text that arrives from outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"

namespace pawl::wire {

constexpr char to_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}
constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// ASCII letters only; `upper` is written in upper case.
constexpr bool is_word(std::string_view text, std::string_view upper) {
  if (text.size() != upper.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (to_upper(text[i]) != upper[i]) return false;
  }
  return true;
}

using pawl::is_plain_text;

// What was sent, fit for an error line: quoted, cut after a few characters, nothing unprintable.
[[nodiscard]] std::string shown(std::string_view text);

// "ACQUIRE" -> "acquire".
[[nodiscard]] std::string lower(std::string_view text);

}  // namespace pawl::wire
