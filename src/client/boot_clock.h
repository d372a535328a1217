// Reads the client's clock. For drivers and programs only; everything else gets `now` as a
// parameter.
#pragma once

#include "client/time.h"

namespace pawl::client {

[[nodiscard]] Instant boot_now();

// The timeout for poll(): rounded up; at most a minute, because poll() does not count the time of a
// suspend.
[[nodiscard]] int poll_timeout(Nanos left);

}  // namespace pawl::client
