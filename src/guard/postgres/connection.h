// A connection to PostgreSQL, as `pawl` makes one.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>

#include "pawl/result.h"

namespace pawl::guard {

// `dsn` as libpq reads it (URI or key=value); what it leaves out comes from the environment
// (PGHOST, PGSERVICE, …) and ~/.pgpass. An error never repeats the dsn: it may hold a password.
// Servers before PostgreSQL 15 are kInvalid.
[[nodiscard]] Result<std::shared_ptr<PGconn>> connect(const std::string& dsn);

}  // namespace pawl::guard
