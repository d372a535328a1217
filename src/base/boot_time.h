// CLOCK_BOOTTIME as a type: the clock by which a process judges how long something took that another
// machine decides about. It continues while the machine is suspended.
//
// Only drivers and programs read it (base/boot_clock.h); everything else gets `now` as a parameter.
// Its type does not convert to or from pawld's service time (base/types.h).
#pragma once

#include <chrono>

#include "base/types.h"

namespace pawl {

struct BootTime {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<BootTime>;
  static constexpr bool is_steady = true;
};
using Instant = BootTime::time_point;

}  // namespace pawl
