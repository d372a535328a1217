#include "drill/time_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace pawl::drill {
namespace {

constexpr int kTicksMax = 11;

// The least of 1, 2, 5, 10, … (times a power of ten) of which no more than kTicksMax fit.
Moment tick_step(Moment span) {
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      const Moment step(digit * power);
      if (span / step <= kTicksMax) return step;
    }
  }
}

std::string tick_label(Moment at, Moment step) {
  const double seconds = static_cast<double>(at.count()) / 1e9;
  const double digits = -std::floor(std::log10(static_cast<double>(step.count()) / 1e9));
  return fmt::format("{:.{}f} s", seconds, std::clamp(static_cast<int>(digits), 0, 9));
}

}  // namespace

double TimeScale::x(Moment at) const {
  const double share = static_cast<double>((at - from).count()) / static_cast<double>((to - from).count());
  return left + share * (right - left);
}

double TimeScale::clamped(Moment at) const {
  return std::clamp(x(at), left, right);
}

std::vector<Tick> TimeScale::ticks() const {
  const Moment step = tick_step(to - from);
  std::vector<Tick> ticks;
  for (Moment at = (from + step - Moment(1)) / step * step; at <= to; at += step) {
    ticks.push_back({at, tick_label(at, step)});
  }
  return ticks;
}

std::vector<TimeScale> time_rows(Moment length, double wanted, double left, double right) {
  PAWL_ASSERT(left < right);
  length = std::max<Moment>(length + length / 50, std::chrono::milliseconds(1));
  const double rows = std::ceil(wanted / (right - left));
  const auto count = static_cast<std::int64_t>(std::clamp(rows, 1.0, static_cast<double>(kRowsMax)));
  std::vector<TimeScale> scales;
  for (std::int64_t row = 0; row < count; ++row) {
    scales.push_back({length * row / count, length * (row + 1) / count, left, right});
  }
  return scales;
}

}  // namespace pawl::drill
