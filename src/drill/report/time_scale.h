// Maps time to x coordinates of the timeline.
//
// A drill waits seconds for a lease to expire, and then everything happens within milliseconds. To
// scale, that would be one long bar. So the width between two events grows with the logarithm of
// the time between them; within it the scale is linear. When not everything fits into one row,
// there are several.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

struct Tick {
  double x = 0;
  std::string label;
};

// One row: the times [from, to) on the pixels [left, right].
class TimeScale {
 public:
  struct Knot {
    Moment at{};
    double x = 0;
  };
  // In order; the first and the last are the ends of the row.
  explicit TimeScale(std::vector<Knot> knots);

  [[nodiscard]] Moment from() const { return knots_.front().at; }
  [[nodiscard]] Moment to() const { return knots_.back().at; }
  // A time outside the row maps to its nearer end.
  [[nodiscard]] double x(Moment at) const;
  [[nodiscard]] bool shows(Moment at) const { return at >= from() && at < to(); }
  // Whether any of [begin, end] is in this row.
  [[nodiscard]] bool meets(Moment begin, Moment end) const { return end >= from() && begin < to(); }
  // Labels with the time of events, as many as fit when each takes `room` pixels.
  [[nodiscard]] std::vector<Tick> ticks(double room) const;

 private:
  std::vector<Knot> knots_;
};

struct Extent {
  double left = 0, right = 0;  // of the picture
  double wanted = 0;           // how wide it would have to be in one row
};

// As many rows as extent.wanted needs, but at most kRowsMax. `events` may be in any order; `length`
// is when the drill ended.
[[nodiscard]] std::vector<TimeScale> time_rows(std::vector<Moment> events, Moment length,
                                               const Extent& extent);
inline constexpr std::size_t kRowsMax = 10;

}  // namespace pawl::drill
