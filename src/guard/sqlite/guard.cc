#include <fmt/format.h>

#include "base/limits.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/functions.h"
#include "pawl/sqlite.h"

namespace pawl {
namespace {

using sqlite::Fault;
using sqlite::Session;
using sqlite::Word;

Session& session_of(sqlite3* db) {
  Session* session = sqlite::session_of(db);
  if (session == nullptr)
    sqlite::fail(Word::kInvalid, "call pawl::sqlite::register_functions() first");
  return *session;
}

// Rolls back unless it was committed.
class Transaction {
 public:
  explicit Transaction(sqlite3* db) : db_(db) { sqlite::execute(db, "BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() { sqlite::execute(db_, "COMMIT"); }

 private:
  sqlite3* db_;
};

// What the work met: often the guard's own words, told by a trigger.
[[noreturn]] void fail_as_told(sqlite3* db, int rc) {
  const std::string told = sqlite3_errmsg(db);
  for (const Word word :
       {Word::kStale, Word::kMissing, Word::kAhead, Word::kReplayed, Word::kUnguarded}) {
    if (told.starts_with(fmt::format("{}:", to_text(word)))) throw Fault{word, told, rc};
  }
  sqlite::fail_with(db, rc);
}

bool went_well(int rc) {
  return rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW;
}

Decision write_once(sqlite3* db, std::uint64_t token, std::string_view resource,
                    const std::function<int()>& work, const SqliteWriteOptions& options) {
  Session& session = session_of(db);
  Transaction transaction(db);
  session.join();
  const sqlite::Named named = session.find(resource);
  const bool good = token >= 1 && token <= limits::kTokenMax;
  if (!good || options.operation == 0)
    refuse_malformed(session, named, good ? "malformed operation number" : "malformed token");
  Decision decision = check(session, resource, token);
  decision.verdict = admit(session, named, token, options.operation, sqlite::Carry::kYes);
  decision.let_through = decision.verdict > Verdict::kReplayed;
  if (decision.verdict == Verdict::kReplayed) return decision;
  const int rc = work();
  if (!went_well(rc)) fail_as_told(db, sqlite3_extended_errcode(db));
  if (sqlite3_get_autocommit(db) != 0)
    sqlite::fail(Word::kTransaction,
                 "the work has ended the transaction that its token was admitted in");
  transaction.commit();
  return decision;
}

}  // namespace

namespace sqlite {

Result<void> register_functions(sqlite3* db) {
  if (add_functions(db) != SQLITE_OK) return Error{Code::kInvalid, sqlite3_errmsg(db)};
  return {};
}

}  // namespace sqlite

SqliteGuard::SqliteGuard(sqlite3* db) : db_(db) {}

std::string SqliteGuard::name() const {
  const char* path = sqlite3_db_filename(db_, "main");
  return fmt::format("sqlite {}", path == nullptr || *path == '\0' ? ":memory:" : path);
}

Result<std::uint64_t> SqliteGuard::advance(std::string_view resource, std::uint64_t token,
                                           std::chrono::milliseconds wait) {
  try {
    return sqlite::advance(session_of(db_), resource, token, wait);
  } catch (const Fault& fault) {
    return sqlite::to_error(fault);
  }
}

Result<Decision> SqliteGuard::check(std::string_view resource, std::uint64_t token) {
  try {
    return sqlite::check(session_of(db_), resource, token);
  } catch (const Fault& fault) {
    return sqlite::to_error(fault);
  }
}

Result<Decision> SqliteGuard::write(const Lease& lease, std::string_view resource,
                                    const std::function<int()>& work,
                                    const SqliteWriteOptions& options) {
  Result<void> held = lease.check();
  if (!held) return held.error();
  const auto work_while_held = [&] {
    const int rc = work();
    // The guard would protect all the same; this spares everybody a late write.
    if (went_well(rc)) held = lease.check();
    return held ? rc : SQLITE_ABORT;
  };
  auto done = write(lease.token(), resource, work_while_held, options);
  if (!held) return held.error();
  if (done || done.error().code != Code::kStaleToken) return done;
  // The lease was alive a moment ago; whether the authority has gone back in time only it can tell.
  const auto now = check(resource, lease.token());
  Error stale = lease.stale(now ? now->max : 0);
  if (stale.code == Code::kIssuerBehind) return stale;
  return done;
}

Result<Decision> SqliteGuard::write(std::uint64_t token, std::string_view resource,
                                    const std::function<int()>& work,
                                    const SqliteWriteOptions& options) {
  if (sqlite3_get_autocommit(db_) == 0)
    return Error{Code::kInvalid, "write() begins a transaction of its own, and one is open"};
  const auto until = std::chrono::steady_clock::now() + options.wait;
  while (true) {
    try {
      return write_once(db_, token, resource, work, options);
    } catch (const Fault& fault) {
      if (fault.word != Word::kBusy || std::chrono::steady_clock::now() >= until)
        return sqlite::to_error(fault);
    }
    sqlite3_sleep(5);
  }
}

}  // namespace pawl
