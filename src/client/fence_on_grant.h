// Advances the guards of a lease that was just granted, before the caller gets it: from then on the
// former holder cannot write, even if the new one never does (hard case 54).
#pragma once

#include <chrono>
#include <stop_token>
#include <vector>

#include "pawl/lease.h"
#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl::client {

// Waits in slices, so that a stop and the loss of the lease are noticed while a former holder's
// transaction stays open. Errors:
//   kBusy         a transaction is still open after `wait`; the detail names it
//   kStaleToken, kIssuerBehind, kLeaseLost, and the errors of the guard itself
[[nodiscard]] Result<void> fence_on_grant(const Lease& lease, std::vector<GuardedResource> guards,
                                          std::chrono::milliseconds wait,
                                          const std::stop_token& stop);

}  // namespace pawl::client
