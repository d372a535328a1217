// Reads CLOCK_BOOTTIME. For drivers and programs only; everything else gets `now` as a
// parameter.
#pragma once

#include "base/boot_time.h"

namespace pawl {

[[nodiscard]] Instant boot_now();

// The timeout for poll(): rounded up; at most a minute, because poll() does not count the time of a
// suspend.
[[nodiscard]] int poll_timeout(Nanos left);

}  // namespace pawl
