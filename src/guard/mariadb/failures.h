// What a caller may conclude from how MariaDB refused. Pure: the SQLSTATEs are the guard's (PW…),
// as in PostgreSQL, and MariaDB's own.
#pragma once

#include "guard/mariadb/connection.h"
#include "pawl/result.h"

namespace pawl::guard {

// A deadlock, or a snapshot older than the fence: the same transaction may pass when it is run
// again. Never a verdict.
[[nodiscard]] bool may_pass_again(const MariaFailure& failure);
// For a statement before the commit: whatever the code, nothing has taken effect. A deadlock or a
// lock wait that timed out is kUnavailable and never a verdict.
[[nodiscard]] Error to_error(const MariaFailure& failure);

}  // namespace pawl::guard
