// The client's clock as a type: CLOCK_BOOTTIME, which continues while the machine is suspended.
//
// In this folder only the drivers read it; everything else gets `now` as a parameter. Its type does
// not convert to or from pawld's service time (base/types.h).
#pragma once

#include <algorithm>
#include <chrono>

#include "base/types.h"

namespace pawl::client {

struct BootTime {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<BootTime>;
  static constexpr bool is_steady = true;
};
using Instant = BootTime::time_point;
inline constexpr Instant kNever = Instant::max();

// Of a duration that a user gave: so short that the sum of a few and the clock does not overflow,
// also when it is milliseconds::max(), which means "for ever".
inline constexpr Millis kDurationMax = std::chrono::years(50);
[[nodiscard]] constexpr Millis bounded(Millis given) {
  return std::clamp(given, -kDurationMax, kDurationMax);
}

}  // namespace pawl::client
