// The administration of a guard in PostgreSQL, over a connection of its own.
#pragma once

#include <memory>
#include <string>

#include "guard/administration.h"

namespace pawl::guard {

// `dsn` as in connection.h.
[[nodiscard]] Result<std::unique_ptr<Administration>> connect_postgres(const std::string& dsn);

}  // namespace pawl::guard
