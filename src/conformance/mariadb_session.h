// One connection to MariaDB as a Session. Its default is READ COMMITTED, not the server's: a new
// token inside a REPEATABLE READ transaction has to be advanced to first, which is a case of its
// own.
#pragma once

#include <memory>

#include "conformance/sql_session.h"
#include "guard/mariadb/statement.h"

namespace pawl::conformance {

[[nodiscard]] std::unique_ptr<Session> make_maria_session(std::shared_ptr<MYSQL> connection,
                                                          const Place& place);

}  // namespace pawl::conformance
