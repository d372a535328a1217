// Text from elsewhere, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace pawl::cli {

// The bytes of the character that `text` begins with; 0 when it begins with none. `text` is not
// empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

// Names and owners come from other people: control characters (and bytes that are no UTF-8) are
// shown as \xNN, so that nobody's owner label can drive the terminal it is printed on.
[[nodiscard]] std::string printable(std::string_view text);

// How many columns printable text takes, near enough: one per character.
[[nodiscard]] std::size_t columns(std::string_view text);

// Printable text in lines of at most `width` columns, broken at spaces: the first begins with
// `head`, the others with that many spaces (`indent`). A word that is longer than a line stays
// whole.
[[nodiscard]] std::string wrapped(std::string_view head, std::string_view text, std::size_t indent,
                                  std::size_t width);

}  // namespace pawl::cli
