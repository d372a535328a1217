// Acquires however long it takes, for callers that wait without a limit: Mutex and Election.
#pragma once

#include <stop_token>
#include <string_view>

#include "pawl/client.h"

namespace pawl::client {

// Repeats Client::acquire() until it succeeds, pawld refuses for good, or `stop` is requested. An
// attempt that fails at once (a full disk, too many waits) is followed by a pause that grows to 2 s.
[[nodiscard]] Result<Lease> acquire_repeatedly(Client& client, std::string_view lock,
                                               const AcquireOptions& options,
                                               const std::stop_token& stop = {});

}  // namespace pawl::client
