// A connection to MariaDB, as `pawl` makes one.
#pragma once

#include <memory>

#include "guard/mariadb/dsn.h"
#include "guard/mariadb/statement.h"

namespace pawl::guard {

// What the DSN leaves out comes from the group [client] of the option files. Servers before MariaDB
// 10.11 are kInvalid.
[[nodiscard]] Result<std::shared_ptr<MYSQL>> connect(const MariaDsn& dsn);

}  // namespace pawl::guard
