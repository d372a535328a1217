// The client's clock: CLOCK_BOOTTIME (base/boot_time.h). In this folder only the drivers read it.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/boot_time.h"
#include "base/types.h"

namespace pawl::client {

using pawl::BootTime;
using pawl::Instant;
inline constexpr Instant kNever = Instant::max();

// Of a duration that a user gave: so short that the sum of a few and the clock does not overflow,
// also when it is milliseconds::max(), which means "for ever".
inline constexpr Millis kDurationMax = std::chrono::years(50);
[[nodiscard]] constexpr Millis bounded(Millis given) {
  return std::clamp(given, -kDurationMax, kDurationMax);
}

}  // namespace pawl::client
