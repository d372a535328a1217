// Request ids: what makes a retry a retry (G5). 128 random bits, because whoever knows one can
// fetch the lease.
#pragma once

#include <string>

#include "base/random.h"

namespace pawl::client {

// 22 characters of [A-Za-z0-9_-].
[[nodiscard]] std::string make_request_id(Random& random);

}  // namespace pawl::client
