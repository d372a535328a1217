// Where a moment is in the picture.
//
// A drill waits for seconds while a lease runs out, and then everything happens within
// milliseconds. To scale, that would be a long bar and a smudge. So time is stretched where much
// happens and shortened where nothing does: between two events the picture is to scale, and the
// wider the longer it takes, but only as the logarithm grows. When more happens than fits beside
// each other, it is drawn in several rows like lines of music.
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

// One row: the moments [from, to) on the pixels [left, right].
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
  // Of a moment outside the row: the end that is nearer.
  [[nodiscard]] double x(Moment at) const;
  [[nodiscard]] bool shows(Moment at) const { return at >= from() && at < to(); }
  // Whether any of [begin, end] is in this row.
  [[nodiscard]] bool meets(Moment begin, Moment end) const { return end >= from() && begin < to(); }
  // When it was, at as many events as there is room for: each label takes so many pixels.
  [[nodiscard]] std::vector<Tick> ticks(double room) const;

 private:
  std::vector<Knot> knots_;
};

struct Extent {
  double left = 0, right = 0;  // of the picture
  double wanted = 0;           // how wide it would have to be in one row
};

// As many rows as are wanted, but no more than a person reads. `events` may be in any order;
// `length` is when all was over.
[[nodiscard]] std::vector<TimeScale> time_rows(std::vector<Moment> events, Moment length,
                                               const Extent& extent);
inline constexpr std::size_t kRowsMax = 10;

}  // namespace pawl::drill
