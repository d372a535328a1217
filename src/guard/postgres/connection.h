// A libpq connection: how `pawl` opens one, and one statement on it, with what it returned or how
// it failed. The only place that reads libpq's results.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "pawl/postgres.h"
#include "pawl/result.h"

namespace pawl {

struct PgFailure {
  std::string state;  // SQLSTATE; empty when there was no server to ask
  std::string message;
  std::string detail;
  std::string hint;
  bool disconnected = false;
};

namespace guard {

// `dsn` as libpq reads it (URI or key=value); what it leaves out comes from the environment
// (PGHOST, PGSERVICE, …) and ~/.pgpass. An error never repeats the dsn: it may hold a password.
// Servers before PostgreSQL 15 are kInvalid.
[[nodiscard]] Result<std::shared_ptr<PGconn>> connect(const std::string& dsn);

struct PgOutcome {
  std::shared_ptr<PGresult> result;          // empty when it failed
  std::shared_ptr<const PgFailure> failure;  // empty when it did not

  explicit operator bool() const { return result != nullptr; }
};

// Parameters are text; the server works out their types, so cast in the SQL where that is
// ambiguous.
[[nodiscard]] PgOutcome execute(PGconn* connection, const std::string& sql,
                                const std::vector<PgValue>& parameters);
// Several statements in one message, without parameters; the outcome is the last one's, or the
// first that failed.
[[nodiscard]] PgOutcome execute_all(PGconn* connection, const std::string& sql);
// What a caller may conclude from a failure: the SQLSTATEs are the guard's (PW…) and those of the
// database. Pure.
//
// A serialization failure or a deadlock: the same transaction may pass when it is run again. Never
// a verdict.
[[nodiscard]] bool may_pass_again(const PgFailure& failure);
// For a statement before the commit: whatever the code, nothing has taken effect.
[[nodiscard]] Error to_error(const PgFailure& failure);
// Quoted for execute_all().
[[nodiscard]] std::string literal(PGconn* connection, std::string_view text);
// A text[] as a parameter.
[[nodiscard]] std::string array_of(const std::vector<std::string>& items);

}  // namespace guard
}  // namespace pawl
