// Reads the client's clock. For drivers and programs only; everything else gets `now` as a
// parameter.
#pragma once

#include "base/boot_clock.h"
#include "client/time.h"

namespace pawl::client {

using pawl::boot_now;
using pawl::poll_timeout;

}  // namespace pawl::client
