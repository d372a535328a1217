#include "drill/report/time_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"

namespace pawl::drill {
namespace {

// The share of the width for a span without events.
double weight(Moment span) {
  const double ms = static_cast<double>(span.count()) / 1e6;
  return 0.3 + 0.35 * std::log2(1 + ms / 0.5);
}
// For the span before the first event, and for that after the last.
constexpr double kEdge = 0.5;

// A time, and the sum of the weights up to it.
struct Mark {
  Moment at{};
  double sum = 0;
};

std::vector<Mark> marks_of(std::vector<Moment> events, Moment length) {
  std::erase_if(events, [&](Moment at) { return at <= Moment{} || at >= length; });
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  std::vector<Mark> marks{{}};
  for (const Moment at : events) {
    const double more = marks.size() == 1 ? kEdge : weight(at - marks.back().at);
    marks.push_back({at, marks.back().sum + more});
  }
  marks.push_back({length, marks.back().sum + kEdge});
  return marks;
}

Moment moment_at(const std::vector<Mark>& marks, double sum) {
  const auto next =
      std::lower_bound(marks.begin(), marks.end(), sum,
                       [](const Mark& mark, double wanted) { return mark.sum < wanted; });
  if (next == marks.begin()) return marks.front().at;
  if (next == marks.end()) return marks.back().at;
  const Mark& before = *(next - 1);
  const double share = (sum - before.sum) / (next->sum - before.sum);
  return before.at + Moment(static_cast<std::int64_t>(
                         share * static_cast<double>((next->at - before.at).count())));
}

}  // namespace

TimeScale::TimeScale(std::vector<Knot> knots) : knots_(std::move(knots)) {
  PAWL_ASSERT(knots_.size() >= 2);
}

double TimeScale::x(Moment at) const {
  const auto next =
      std::lower_bound(knots_.begin(), knots_.end(), at,
                       [](const Knot& knot, Moment wanted) { return knot.at < wanted; });
  if (next == knots_.begin()) return knots_.front().x;
  if (next == knots_.end()) return knots_.back().x;
  const Knot& before = *(next - 1);
  const double share = static_cast<double>((at - before.at).count()) /
                       static_cast<double>((next->at - before.at).count());
  return before.x + share * (next->x - before.x);
}

std::vector<Tick> TimeScale::ticks(double room) const {
  const int digits = to() < std::chrono::seconds(60) ? 3 : 1;
  std::vector<Tick> ticks;
  for (std::size_t i = 1; i + 1 < knots_.size(); ++i) {
    const double x = knots_[i].x;
    if (x - room / 2 < knots_.front().x || x + room / 2 > knots_.back().x) continue;
    if (!ticks.empty() && x - ticks.back().x < room) continue;
    const double seconds = static_cast<double>(knots_[i].at.count()) / 1e9;
    ticks.push_back({x, fmt::format("{:.{}f} s", seconds, digits)});
  }
  return ticks;
}

std::vector<TimeScale> time_rows(std::vector<Moment> events, Moment length, const Extent& extent) {
  PAWL_ASSERT(extent.left < extent.right);
  length = std::max<Moment>(length + length / 50, std::chrono::milliseconds(1));
  const std::vector<Mark> marks = marks_of(std::move(events), length);
  const double width = extent.right - extent.left;
  const auto count = static_cast<std::size_t>(
      std::clamp(std::ceil(extent.wanted / width), 1.0, static_cast<double>(kRowsMax)));
  std::vector<TimeScale> rows;
  for (std::size_t row = 0; row < count; ++row) {
    const double begin = marks.back().sum * static_cast<double>(row) / static_cast<double>(count);
    const double end = marks.back().sum * static_cast<double>(row + 1) / static_cast<double>(count);
    std::vector<TimeScale::Knot> knots{{moment_at(marks, begin), extent.left}};
    for (const Mark& mark : marks) {
      if (mark.at <= knots.back().at || mark.sum >= end) continue;
      knots.push_back({mark.at, extent.left + (mark.sum - begin) / (end - begin) * width});
    }
    knots.push_back({row + 1 == count ? length : moment_at(marks, end), extent.right});
    rows.emplace_back(std::move(knots));
  }
  return rows;
}

}  // namespace pawl::drill
