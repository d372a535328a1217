// How a drill's facts are said in a page: the words for fates, faults and spans, and text that is
// safe inside HTML.
#pragma once

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

// "1 write", "2 writes".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

[[nodiscard]] std::string_view fate_word(Fate fate);
[[nodiscard]] std::string_view fault_word(FaultKind kind);

// Everyone who took part, pawld aside, in the order in which they first appear.
[[nodiscard]] std::vector<std::string> actors_of(const Record& record);

// The end of what may still have been so when the drill ended.
[[nodiscard]] inline Moment until_or_end(const std::optional<Moment>& until, const Record& record) {
  return until.value_or(record.length);
}

}  // namespace pawl::drill
