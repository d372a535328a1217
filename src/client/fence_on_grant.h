// Advances the guards of a lease that was just granted, before anybody is given it: from then on
// the former holder cannot write, even if the new one never has (hard case 54).
#pragma once

#include <chrono>
#include <stop_token>
#include <vector>

#include "pawl/lease.h"
#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl::client {

// In slices, so that a stop and the loss of the lease are noticed while a former holder's
// transaction stays open.
//   kBusy         one is still open when `wait` is over; the detail names it
//   kStaleToken, kIssuerBehind, kLeaseLost, and what the guard itself fails with
[[nodiscard]] Result<void> fence_on_grant(const Lease& lease, std::vector<GuardedResource> guards,
                                          std::chrono::milliseconds wait,
                                          const std::stop_token& stop);

}  // namespace pawl::client
