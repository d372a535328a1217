// Virtual tables without content, through which SQLite tells a Session what it would not be told
// otherwise: pawl_session, that its transaction is over; pawl_closing, that its connection is being
// closed.
#pragma once

#include <memory>

#include "guard/sqlite/api.h"
#include "guard/sqlite/session.h"

namespace pawl::sqlite {

// The connection owns the session from now on. SQLite's result code.
[[nodiscard]] int watch_transactions(sqlite3* db, std::unique_ptr<Session> session);

}  // namespace pawl::sqlite
