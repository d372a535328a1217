// Writes to a SQLite file that a newer holder's token fences out. Install the guard first: `pawl
// guard install sqlite`.
//
//   pawl::sqlite::register_functions(db);  // a sqlite3* you have, opened by the same SQLite
//   pawl::SqliteGuard guard(db);
//   auto done = guard.write(lease, "orders", [&] {
//     const char* sql = "UPDATE orders SET state = 'shipped' WHERE id = 7";
//     return sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
//   });
//   if (!done) return report(done.error());  // kStaleToken is final
//
// Link Pawl::sqlite. Nothing here is needed by other writers: the check is in the file, and refuses
// the sqlite3 shell too.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

struct sqlite3;

namespace pawl {
namespace sqlite {

// Gives this connection pawl_use() and the others, as loading libpawl_sqlite.so would. Without it a
// connection cannot write to protected tables. Harmless when repeated.
[[nodiscard]] PAWL_PUBLIC Result<void> register_functions(sqlite3* db);

}  // namespace sqlite

struct SqliteWriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it.
  std::optional<std::uint64_t> operation = {};
  // How long other writers are waited for, in all. The connection's own busy timeout counts as
  // well.
  std::chrono::milliseconds wait{5000};
};

// Used by one thread at a time, like the connection, which it does not own and expects outside any
// transaction.
class PAWL_PUBLIC SqliteGuard final : public Guard {
 public:
  // register_functions() was called for it.
  explicit SqliteGuard(sqlite3* db);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] GuardStrength strength() override;
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Runs `work` between BEGIN IMMEDIATE and COMMIT, with the lease's token admitted. `work` returns
  // SQLite's result code; any other than SQLITE_OK, SQLITE_DONE and SQLITE_ROW rolls back. The
  // value says that the work is in effect: admitted now, replayed (done before, `work` did not
  // run), or let through by a mode that does not refuse.
  //   kStaleToken    a newer holder has been here. Stop; never retried.
  //   kIssuerBehind  stale, and yet the lease is alive: pawld's counter is behind the guard. An
  //                  operator must raise it.
  //   kLeaseLost     the lease is over, noticed before the commit. Nothing happened.
  //   kBusy          others were writing until the wait was over. Nothing happened.
  //   kInvalid       the guard or the SQL is wrong: the detail has SQLite's words.
  //   kUnavailable   the file could not be written (full, I/O). Nothing happened.
  // Waiting for others, `work` may run several times. What it throws rolls back and is thrown on.
  [[nodiscard]] Result<Decision> write(const Lease& lease, std::string_view resource,
                                       const std::function<int()>& work,
                                       const SqliteWriteOptions& options = {});
  // The same for a program that has only a token, such as a command under `pawl run`: no lease is
  // checked then.
  [[nodiscard]] Result<Decision> write(std::uint64_t token, std::string_view resource,
                                       const std::function<int()>& work,
                                       const SqliteWriteOptions& options = {});

 private:
  sqlite3* db_;
};

}  // namespace pawl
