// Reads the client's clock. For drivers and programs only; everything else is told `now`.
#pragma once

#include "client/time.h"

namespace pawl::client {

[[nodiscard]] Instant boot_now();

}  // namespace pawl::client
