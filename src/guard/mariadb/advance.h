// Raising a fence in MariaDB, and who stands in the way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "guard/mariadb/statement.h"
#include "pawl/result.h"

namespace pawl::guard {

// As Guard::advance(), except that kBusy names nobody: asking takes a moment, and some know already. MariaDB waits in whole
// seconds, one at least.
[[nodiscard]] Result<std::uint64_t> advance(MYSQL* connection, const std::string& resource,
                                            std::uint64_t token, std::chrono::milliseconds wait);
// Connections with a transaction open that hold locks, as sentences. MariaDB tells whose lock it is only while somebody
// waits for it, so these are all who might be in the way.
[[nodiscard]] Result<std::vector<std::string>> blockers(MYSQL* connection, const std::string& resource);

}  // namespace pawl::guard
