// Text from outside: UTF-8, and making it safe to print. Invalid bytes are never an error here;
// each function says what it makes of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl {

// The number of bytes of the UTF-8 character at the front of `text`; 0 when the bytes there are
// invalid. `text` must not be empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

// Valid UTF-8 without control characters (U+0000–001F, U+007F–009F): what may be shown and stored
// as a name.
[[nodiscard]] bool is_plain_text(std::string_view text);

// `text` with U+FFFD in place of each invalid byte.
[[nodiscard]] std::string to_valid_utf8(std::string_view text);

// `text` with control characters and invalid bytes as \xNN. Names and owner labels come from other
// people, and must not control the terminal that they are printed on.
[[nodiscard]] std::string printable(std::string_view text);

// The columns that printable text takes, approximately: one per character.
[[nodiscard]] std::size_t columns(std::string_view text);

// Printable text in lines of at most `width` columns, broken at spaces. The first line starts with
// `head`, the others with `indent` spaces. A word that is longer than a line is not broken.
[[nodiscard]] std::string wrapped(std::string_view head, std::string_view text, std::size_t indent,
                                  std::size_t width);

}  // namespace pawl
