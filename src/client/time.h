// The client's clock as a type: CLOCK_BOOTTIME, which continues while the machine is suspended.
//
// In this folder only the drivers read it; everything else gets `now` as a parameter. Its type does
// not convert to or from pawld's service time (base/types.h).
#pragma once

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

}  // namespace pawl::client
