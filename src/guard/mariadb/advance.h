// Raising a fence in MariaDB, and the transactions that block it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "guard/mariadb/connection.h"
#include "pawl/result.h"

namespace pawl::guard {

// As Guard::advance(), except that kBusy does not name the blockers: blockers() does. MariaDB waits
// in whole seconds, one at least.
[[nodiscard]] Result<std::uint64_t> advance(MYSQL* connection, const std::string& resource,
                                            std::uint64_t token, std::chrono::milliseconds wait);
// The same, and ends the transactions that are in the way when the wait is over: their connections
// are killed by `killer`, another connection, and their effects are gone. Only for a token beyond
// the fence, because MariaDB does not tell under which token a transaction was admitted, and up to
// the fence it may be the holder's own. kDenied: the account may not see or kill them.
[[nodiscard]] Result<std::uint64_t> advance_and_evict(MYSQL* connection, MYSQL* killer,
                                                      const std::string& resource,
                                                      std::uint64_t token,
                                                      std::chrono::milliseconds wait);
// Connections with a transaction open that hold locks, as sentences. MariaDB shows the owner of a
// lock only while another transaction waits for it, so these are all that may block an advance.
[[nodiscard]] Result<std::vector<std::string>> blockers(MYSQL* connection,
                                                        const std::string& resource);

}  // namespace pawl::guard
