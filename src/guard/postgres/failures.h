// What a caller may conclude from how PostgreSQL refused. Pure: the SQLSTATEs are the guard's (PW…)
// and PostgreSQL's own.
#pragma once

#include "guard/postgres/connection.h"
#include "guard/sql/states.h"
#include "pawl/result.h"

namespace pawl::guard {

// A serialization failure or a deadlock: the same transaction may pass when it is run again. Never
// a verdict.
[[nodiscard]] bool may_pass_again(const PgFailure& failure);
// For a statement before the commit: whatever the code, nothing has taken effect.
[[nodiscard]] Error to_error(const PgFailure& failure);

}  // namespace pawl::guard
