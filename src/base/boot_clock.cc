#include "base/boot_clock.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "base/assert.h"

namespace pawl {

Instant boot_now() {
  timespec now{};
  PAWL_ASSERT(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
  return Instant(std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec));
}

int poll_timeout(Nanos left) {
  constexpr Millis kLongest{60'000};
  if (left > kLongest) return static_cast<int>(kLongest.count());
  return static_cast<int>(std::chrono::ceil<Millis>(std::max(left, Nanos(0))).count());
}

}  // namespace pawl
