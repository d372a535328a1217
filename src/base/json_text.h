// Escapes text for a JSON string, without the quotes. Bytes that are not UTF-8 are copied as they
// are.
//
// Everything else writes JSON with Boost.JSON. This is for the two places that cannot: the log,
// which cuts a line to a number of bytes between two characters, and the SQLite extension, which
// links nothing but SQLite.
#pragma once

#include <string>
#include <string_view>

namespace pawl {

inline void append_json_text(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
}

}  // namespace pawl
