// The administration of a guard in MariaDB, over a connection of its own.
//
// MariaDB commits at every CREATE and DROP, so a rehearsal of those checks what can be checked and
// runs nothing. Evicting stragglers takes a second connection, which looks whom the first one waits
// for.
#pragma once

#include <memory>
#include <string>

#include "guard/administration.h"

namespace pawl::guard {

// `dsn` as in dsn.h.
[[nodiscard]] Result<std::unique_ptr<Administration>> connect_maria(const std::string& dsn);

}  // namespace pawl::guard
