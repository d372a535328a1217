// The client's own clock, as a type: CLOCK_BOOTTIME, which runs on while the machine is suspended.
//
// Nothing in this folder but the drivers reads it; everything else is told `now`. A reading is
// never mixed up with pawld's service time (base/types.h), because neither converts to the other.
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
