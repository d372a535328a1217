#include "client/boot_clock.h"

#include <time.h>

#include "base/assert.h"

namespace pawl::client {

Instant boot_now() {
  timespec now{};
  PAWL_ASSERT(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
  return Instant(std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec));
}

}  // namespace pawl::client
