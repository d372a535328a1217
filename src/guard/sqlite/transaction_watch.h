// pawl_session: a virtual table without content, through which SQLite tells a Session that its transaction is over, and
// that its connection is being closed.
#pragma once

#include <memory>

#include "guard/sqlite/api.h"
#include "guard/sqlite/session.h"

namespace pawl::sqlite {

// The connection owns the session from now on. SQLite's result code.
[[nodiscard]] int watch_transactions(sqlite3* db, std::unique_ptr<Session> session);

}  // namespace pawl::sqlite
