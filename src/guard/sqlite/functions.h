// The SQL functions: pawl_use, pawl_admit, pawl_advance, pawl_check, pawl_fence, and those of
// owners.
#pragma once

#include "guard/sqlite/api.h"

namespace pawl::sqlite {

class Session;

// Once per connection, and harmless when repeated. SQLite's result code.
[[nodiscard]] int add_functions(sqlite3* db);
// That of this connection; nothing: add_functions() was not called.
[[nodiscard]] Session* session_of(sqlite3* db);

}  // namespace pawl::sqlite
