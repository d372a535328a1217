// Reads the client's clock. For drivers and programs only; everything else is told `now`.
#pragma once

#include "client/time.h"

namespace pawl::client {

[[nodiscard]] Instant boot_now();

// For poll(): what is left, rounded up; a minute at most, because a clock that was suspended is to
// be looked at again.
[[nodiscard]] int poll_timeout(Nanos left);

}  // namespace pawl::client
