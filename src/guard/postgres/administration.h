// The administration of a guard in PostgreSQL, over a connection of its own.
#pragma once

#include <memory>
#include <string>

#include "guard/administration.h"

namespace pawl::guard {

// `dsn` as libpq reads it (URI or key=value); what it leaves out comes from the environment (PGHOST, PGSERVICE, …) and
// ~/.pgpass. An error never repeats the dsn: it may hold a password.
[[nodiscard]] Result<std::unique_ptr<Administration>> connect_postgres(const std::string& dsn);

}  // namespace pawl::guard
