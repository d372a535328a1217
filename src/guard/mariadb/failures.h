// What a caller may conclude from how MariaDB refused. Pure: the SQLSTATEs are the guard's (PW…), as in PostgreSQL, and MariaDB's own.
#pragma once

#include "guard/mariadb/statement.h"
#include "pawl/result.h"

namespace pawl::guard {

// For a statement before the commit: whatever the code, nothing has taken effect. A deadlock or a lock wait that timed out is
// kUnavailable and never a verdict.
[[nodiscard]] Error to_error(const MariaFailure& failure);

}  // namespace pawl::guard
