#include <fmt/format.h>

#include "guard/postgres/connection.h"
#include "guard/postgres/failures.h"
#include "guard/postgres/statement.h"
#include "nemesis/resource.h"
#include "pawl/postgres.h"

namespace pawl::nemesis {
namespace {

constexpr std::chrono::milliseconds kWait{1'500};

std::string insertion(const Row& row, std::int64_t at) {
  return fmt::format("INSERT INTO {} (token, op, writer, at) VALUES ({}, {}, '{}', {})",
                     row.resource, row.token, row.op, row.writer, at);
}

// The front's guard, on a connection that is made again when the server was gone.
class Reconnecting final : public Guard {
 public:
  explicit Reconnecting(std::string dsn) : dsn_(std::move(dsn)) {}

  [[nodiscard]] std::string name() const override { return "postgres"; }

  Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                std::chrono::milliseconds wait) override {
    PgGuard* guard = connected();
    if (guard == nullptr) return Error{Code::kUnavailable, "PostgreSQL is not there"};
    return guard->advance(resource, token, std::min(wait, kWait));
  }

  Result<Decision> check(std::string_view resource, std::uint64_t token) override {
    PgGuard* guard = connected();
    if (guard == nullptr) return Error{Code::kUnavailable, "PostgreSQL is not there"};
    return guard->check(resource, token);
  }

  // nullptr: the server is not there.
  PgGuard* connected() {
    if (connection_ && PQstatus(connection_.get()) == CONNECTION_OK) return &*guard_;
    guard_.reset();
    connection_.reset();
    auto made = guard::connect(dsn_);
    if (!made) return nullptr;
    connection_ = *made;
    guard_.emplace(connection_.get());
    return &*guard_;
  }
  [[nodiscard]] PGconn* connection() {
    return connected() != nullptr ? connection_.get() : nullptr;
  }

 private:
  std::string dsn_;
  std::shared_ptr<PGconn> connection_;
  std::optional<PgGuard> guard_;
};

class PostgresResource final : public Resource {
 public:
  PostgresResource(const std::string& dsn, Clock now) : guard_(dsn), now_(std::move(now)) {}

  Guard* guard() override { return &guard_; }

  Answer advance(const std::string& resource, std::uint64_t token) override {
    const auto done = guard_.advance(resource, token, kWait);
    return done ? Answer{Outcome::kAdmitted, {}} : answer_of(done.error());
  }

  Answer check(const std::string& resource, std::uint64_t token) override {
    return answer_of(guard_.check(resource, token));
  }

  Answer write(const Row& row, const Lease* lease) override {
    PGconn* connection = guard_.connection();
    if (connection == nullptr) return {Outcome::kNothing, "PostgreSQL is not there"};
    return lease != nullptr ? by_front(row, *lease) : by_hand(row, connection);
  }

 private:
  Answer by_front(const Row& row, const Lease& lease) {
    const auto insert = [&](PgTransaction& tx) { tx.exec(insertion(row, now_())); };
    return answer_of(guard_.connected()->write(lease, row.resource, insert, {.operation = row.op}));
  }

  Answer by_hand(const Row& row, PGconn* connection) {
    const std::string use =
        fmt::format("BEGIN; SELECT pawl.use('{}', {}, {})", row.resource, row.token, row.op);
    const guard::PgOutcome used = guard::execute_all(connection, use);
    if (!used) return undone(connection, *used.failure);
    const bool replayed = std::string_view(PQgetvalue(used.result.get(), 0, 0)) == "replayed";
    if (!replayed) {
      const guard::PgOutcome put = guard::execute_all(connection, insertion(row, now_()));
      if (!put) return undone(connection, *put.failure);
    }
    const guard::PgOutcome committed = guard::execute_all(connection, "COMMIT");
    if (!committed) return {Outcome::kUnknown, committed.failure->message};
    return {replayed ? Outcome::kReplayed : Outcome::kAdmitted, {}};
  }

  static Answer undone(PGconn* connection, const PgFailure& failure) {
    if (!failure.disconnected) (void)guard::execute_all(connection, "ROLLBACK");
    return {failure.state == "PW002" ? Outcome::kStale : Outcome::kNothing, failure.message};
  }

  Reconnecting guard_;
  Clock now_;
};

}  // namespace

std::unique_ptr<Resource> open_postgres(const std::string& dsn, Resource::Clock now) {
  return std::make_unique<PostgresResource>(dsn, std::move(now));
}

}  // namespace pawl::nemesis
