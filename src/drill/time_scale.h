// Where a moment is in the picture: a drill is drawn in one row, or, when more happens than fits beside each other, in
// several rows like lines of music.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

struct Tick {
  Moment at{};
  std::string label;
};

// One row: the moments [from, to) on the pixels [left, right].
struct TimeScale {
  Moment from{}, to{};
  double left = 0, right = 0;

  [[nodiscard]] double x(Moment at) const;
  // x(), kept inside the row.
  [[nodiscard]] double clamped(Moment at) const;
  [[nodiscard]] bool shows(Moment at) const { return at >= from && at < to; }
  // Whether any of [begin, end] is in this row.
  [[nodiscard]] bool meets(Moment begin, Moment end) const { return end >= from && begin < to; }
  // Round numbers of seconds, about a dozen at most.
  [[nodiscard]] std::vector<Tick> ticks() const;
};

// Rows of equal span, as many as `wanted` pixels need, but no more than a person reads. The last reaches a little
// beyond the end, so that what happened there is seen whole.
[[nodiscard]] std::vector<TimeScale> time_rows(Moment length, double wanted, double left, double right);
inline constexpr std::size_t kRowsMax = 10;

}  // namespace pawl::drill
