#include "guard/sqlite/connection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "guard/sqlite/connection_state.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/statement.h"

namespace pawl::sqlite {

Result<std::shared_ptr<sqlite3>> open_file(const std::string& path) {
  if (path.empty()) return Error{Code::kInvalid, "which file?"};
  sqlite3* opened = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  std::shared_ptr<sqlite3> db(opened, sqlite3_close_v2);
  if (rc != SQLITE_OK && access(path.c_str(), F_OK) != 0 && errno == ENOENT)
    return Error{Code::kUnavailable,
                 fmt::format("{}: there is no such file. Create the database and its table first; "
                             "a guard is added to a table that exists",
                             path)};
  if (rc != SQLITE_OK)
    return Error{Code::kUnavailable, fmt::format("{}: {}", path, sqlite3_errmsg(opened))};
  sqlite3_busy_timeout(opened, static_cast<int>(kBusyWait.count()));
  try {
    execute(opened, "PRAGMA synchronous = FULL");
    Statement(opened, "SELECT count(*) FROM sqlite_schema")
        .step();  // Whether it is a database at all.
  } catch (const Fault& fault) {
    return Error{to_error(fault).code, fmt::format("{}: {}", path, fault.text)};
  }
  if (add_functions(opened) != SQLITE_OK) return Error{Code::kInvalid, sqlite3_errmsg(opened)};
  return db;
}

}  // namespace pawl::sqlite
