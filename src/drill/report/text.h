// Text for the report page: words for outcomes, faults and durations, HTML escaping, and labels in
// the SVG timeline.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

// Safe inside an element and inside a quoted attribute. Control characters become U+FFFD; bytes
// that are not UTF-8 stay, because a browser reads them as U+FFFD and they cannot hide a bracket
// from it.
[[nodiscard]] std::string escaped(std::string_view text);

// About three digits: 4.2 ms, 310 ms, 2.13 s, 64.5 s; the space does not break a line.
[[nodiscard]] std::string span_text(Moment span);

[[nodiscard]] std::string_view fate_word(Fate fate);
[[nodiscard]] std::string_view fault_word(FaultKind kind);

// The names of all workers (without pawld), in the order of their first appearance.
[[nodiscard]] std::vector<std::string> workers_of(const DrillRecord& record);

// The end of a span that may still be open when the drill ended.
[[nodiscard]] inline Moment until_or_end(const std::optional<Moment>& until,
                                         const DrillRecord& record) {
  return until.value_or(record.length);
}

// The width of a label in pixels, estimated generously so that labels do not overlap in any font.
[[nodiscard]] double text_width(std::string_view text);

// The first of `choices` that fits into `width` pixels; empty: none does.
[[nodiscard]] std::string fitting(const std::vector<std::string>& choices, double width);

// A <text> element of that class, escaped; empty without words.
[[nodiscard]] std::string svg_text(std::string_view css_class, double x, double y,
                                   std::string_view words);

// A <title> element: the tooltip of the element that contains it.
[[nodiscard]] std::string svg_title(std::string_view words);

}  // namespace pawl::drill
