#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "guard/sqlite/connection_state.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/owner.h"
#include "guard/transaction_writer.h"
#include "pawl/sqlite.h"

namespace pawl {
namespace {

using sqlite::ConnectionState;
using sqlite::Fault;
using sqlite::Word;

ConnectionState& state_of(sqlite3* db) {
  ConnectionState* state = sqlite::state_of(db);
  if (state == nullptr)
    sqlite::fail(Word::kInvalid, "call pawl::sqlite::register_functions() first");
  return *state;
}

bool is_success(int rc) {
  return rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW;
}

// The error of the user's work: often a refusal, which a trigger has raised with the guard's words.
Fault fault_of_work(sqlite3* db) {
  const int rc = sqlite3_extended_errcode(db);
  const std::string message = sqlite3_errmsg(db);
  for (const Word word :
       {Word::kStale, Word::kMissing, Word::kAhead, Word::kReplayed, Word::kUnguarded}) {
    if (message.starts_with(fmt::format("{}:", to_text(word)))) return {word, message, rc};
  }
  try {
    sqlite::fail_with(db, rc);
  } catch (const Fault& fault) {
    return fault;
  }
}

// BEGIN IMMEDIATE, the check, the work, COMMIT. Faults of the functions below it end here.
class SqliteWriter final : public guard::TransactionWriter {
 public:
  SqliteWriter(sqlite3* db, guard::WriteOrder order, std::optional<std::uint64_t> operation,
               const std::function<int()>& work)
      : TransactionWriter(std::move(order)), db_(db), operation_(operation), work_(work) {}

 private:
  std::variant<Decision, Failure, Error> begin() override {
    try {
      ConnectionState& state = state_of(db_);
      state.note_user(resources().front());
      sqlite::execute(db_, "BEGIN IMMEDIATE");
      PAWL_ASSERT(sqlite3_get_autocommit(db_) == 0);
      state.join();
      return admit_in(state);
    } catch (const Fault& fault) {
      return to_failure(fault);
    }
  }

  Step work() override {
    const int rc = work_();
    if (!is_success(rc)) return to_failure(fault_of_work(db_));
    if (sqlite3_get_autocommit(db_) == 0) return {};
    return Error{Code::kInvalid,
                 "the work has ended the transaction that its token was admitted in"};
  }

  Step commit() override {
    try {
      sqlite::execute(db_, "COMMIT");
      return {};
    } catch (const Fault& fault) {
      return to_failure(fault);
    }
  }

  void roll_back() override {
    if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }

  bool connect_again() override { return false; }  // There is no connection to lose.

  Decision admit_in(ConnectionState& state) {
    const std::string& resource = resources().front();
    const sqlite::Named named = state.find(resource);
    const bool good = token() >= 1 && token() <= limits::kTokenMax;
    if (!good || operation_ == 0)
      refuse_malformed(state, named, good ? "malformed operation number" : "malformed token");
    Decision decision = sqlite::check(state, resource, token());
    decision.verdict = sqlite::admit(state, named, token(), operation_, sqlite::Carry::kYes);
    decision.let_through = decision.verdict > Verdict::kReplayed;
    return decision;
  }

  // `max` is for the explanation of a stale token.
  Failure to_failure(const Fault& fault) {
    Failure failure{.error = sqlite::to_error(fault), .may_pass_again = fault.word == Word::kBusy};
    if (fault.word != Word::kStale) return failure;
    try {
      failure.max = sqlite::check(state_of(db_), resources().front(), token()).max;
    } catch (const Fault&) {  // Then the explanation has no figure.
    }
    return failure;
  }

  sqlite3* const db_;
  const std::optional<std::uint64_t> operation_;
  const std::function<int()>& work_;
};

constexpr std::chrono::milliseconds kBusyPauseMax{5};

Result<Decision> write_held(sqlite3* db, guard::HeldToken held, std::string_view resource,
                            const std::function<int()>& work, const SqliteWriteOptions& options) {
  if (sqlite3_get_autocommit(db) == 0)
    return Error{Code::kInvalid, "write() begins a transaction of its own, and one is open"};
  return SqliteWriter(db,
                      {.held = std::move(held),
                       .resources = {std::string(resource)},
                       .limits = {.until = std::chrono::steady_clock::now() + options.wait,
                                  .pause_max = kBusyPauseMax}},
                      options.operation, work)
      .run();
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

GuardStrength SqliteGuard::strength() {
  return sqlite::strength_of(db_);
}

Result<std::uint64_t> SqliteGuard::advance(std::string_view resource, std::uint64_t token,
                                           std::chrono::milliseconds wait) {
  try {
    return sqlite::advance(state_of(db_), resource, token, wait);
  } catch (const Fault& fault) {
    return sqlite::to_error(fault);
  }
}

Result<Decision> SqliteGuard::check(std::string_view resource, std::uint64_t token) {
  try {
    return sqlite::check(state_of(db_), resource, token);
  } catch (const Fault& fault) {
    return sqlite::to_error(fault);
  }
}

Result<Decision> SqliteGuard::write(const Lease& lease, std::string_view resource,
                                    const std::function<int()>& work,
                                    const SqliteWriteOptions& options) {
  return write_held(db_, guard::held_by(lease), resource, work, options);
}

Result<Decision> SqliteGuard::write(std::uint64_t token, std::string_view resource,
                                    const std::function<int()>& work,
                                    const SqliteWriteOptions& options) {
  return write_held(db_, {.token = token}, resource, work, options);
}

}  // namespace pawl
