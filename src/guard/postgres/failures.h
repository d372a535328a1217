// What a caller may conclude from how PostgreSQL refused. Pure: the SQLSTATEs are the guard's (PW…) and PostgreSQL's own.
#pragma once

#include "guard/postgres/statement.h"
#include "guard/states.h"
#include "pawl/result.h"

namespace pawl::guard {

// A serialization failure or a deadlock: the same transaction may pass when it is run again. Never a verdict.
[[nodiscard]] bool may_pass_again(const PgFailure& failure);
// For a statement before the commit: whatever the code, nothing has taken effect.
[[nodiscard]] Error to_error(const PgFailure& failure);
// A number the guard wrote into DETAIL: `token=33 max=34 mode=enforce resource=orders`.
[[nodiscard]] std::uint64_t number_in_detail(const PgFailure& failure, std::string_view key);

}  // namespace pawl::guard
