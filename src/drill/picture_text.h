// Words in a picture: how wide they may be taken to be, and the markup around them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pawl::drill {

// A generous guess in pixels, so that labels never collide whatever font a reader has.
[[nodiscard]] double text_width(std::string_view text);

// The first of them that fits into so many pixels; empty: none does.
[[nodiscard]] std::string fitting(const std::vector<std::string>& choices, double width);

// A <text> of that class, escaped; nothing when there are no words.
[[nodiscard]] std::string text(std::string_view style, double x, double y, std::string_view words);

// What a reader is told who points at the element that this stands in.
[[nodiscard]] std::string titled(std::string_view words);

}  // namespace pawl::drill
