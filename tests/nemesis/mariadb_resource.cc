#include <fmt/format.h>

#include "guard/mariadb/connection.h"
#include "guard/mariadb/failures.h"
#include "guard/mariadb/statement.h"
#include "nemesis/resource.h"

namespace pawl::nemesis {
namespace {

constexpr int kWaitSeconds = 2;

// There is no front in C++: what a client in any language does.
class MariaResource final : public Resource {
 public:
  MariaResource(std::string dsn, Clock now) : dsn_(std::move(dsn)), now_(std::move(now)) {}

  Guard* guard() override { return nullptr; }

  Answer advance(const std::string& resource, std::uint64_t token) override {
    if (!connected()) return {Outcome::kNothing, "MariaDB is not there"};
    const auto done = guard::call(connection_.get(), "advance",
                                  {resource, std::to_string(token), std::to_string(kWaitSeconds)});
    if (done) return {Outcome::kAdmitted, {}};
    const Answer refused = answer_of(guard::to_error(*done.failure));
    if (done.failure->disconnected) return {Outcome::kUnknown, lost(refused.detail)};
    return refused;
  }

  Answer check(const std::string& resource, std::uint64_t token) override {
    if (!connected()) return {Outcome::kNothing, "MariaDB is not there"};
    const auto done = guard::call(connection_.get(), "check", {resource, std::to_string(token)});
    if (!done) return undone(*done.failure);
    const auto verdict = done.at(0, "verdict");
    if (!verdict) return {Outcome::kNothing, "no verdict"};
    return {verdict == "admitted" ? Outcome::kAdmitted : Outcome::kStale, *verdict};
  }

  Answer write(const Row& row, const Lease*) override {
    if (!connected()) return {Outcome::kNothing, "MariaDB is not there"};
    MYSQL* connection = connection_.get();
    if (const auto begun = guard::execute(connection, "START TRANSACTION"); !begun)
      return undone(*begun.failure);
    const auto used = guard::call(
        connection, "use_op", {row.resource, std::to_string(row.token), std::to_string(row.op)});
    if (!used) return undone(*used.failure);
    const bool replayed = !used.rows.empty() && used.rows[0][0] == "replayed";
    if (!replayed) {
      const auto put = guard::execute(
          connection,
          fmt::format("INSERT INTO {} (token, op, writer, at) VALUES ({}, {}, '{}', {})",
                      row.resource, row.token, row.op, row.writer, now_()));
      if (!put) return undone(*put.failure);
    }
    if (const auto committed = guard::execute(connection, "COMMIT"); !committed)
      return {Outcome::kUnknown, lost(committed.failure->message)};
    return {replayed ? Outcome::kReplayed : Outcome::kAdmitted, {}};
  }

 private:
  bool connected() {
    if (connection_) return true;
    const auto dsn = guard::parse_maria_dsn(dsn_);
    if (!dsn) return false;
    auto made = guard::connect(*dsn);
    if (!made) return false;
    connection_ = *made;
    (void)guard::execute(connection_.get(),
                         "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    (void)guard::execute(connection_.get(), "SET SESSION innodb_lock_wait_timeout = 2");
    return true;
  }

  std::string lost(std::string detail) {
    connection_.reset();
    return detail;
  }

  Answer undone(const guard::MariaFailure& failure) {
    const bool stale = failure.state == "PW002";
    const std::string detail = failure.message;
    if (failure.disconnected || !guard::execute(connection_.get(), "ROLLBACK")) connection_.reset();
    return {stale ? Outcome::kStale : Outcome::kNothing, detail};
  }

  std::string dsn_;
  Clock now_;
  std::shared_ptr<MYSQL> connection_;
};

}  // namespace

std::unique_ptr<Resource> open_mariadb(const std::string& dsn, Resource::Clock now) {
  return std::make_unique<MariaResource>(dsn, std::move(now));
}

}  // namespace pawl::nemesis
