// One connection to a SQLite file as a Session.
#pragma once

#include <memory>

#include "conformance/sql_session.h"
#include "guard/sqlite/api.h"

namespace pawl::conformance {

[[nodiscard]] std::unique_ptr<Session> make_sqlite_session(std::shared_ptr<sqlite3> db,
                                                           const Place& place);

}  // namespace pawl::conformance
