#include "conformance/mariadb_session.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/mariadb/failures.h"
#include "guard/words.h"

namespace pawl::conformance {
namespace {

using guard::MariaFailure;
using guard::MariaOutcome;
using guard::MariaValue;

// What a failed statement says.
Outcome refusal(const MariaFailure& failure) {
  if (const auto known = answer_of_state(failure.state)) return {*known, false, failure.message};
  const Error error = guard::to_error(failure);
  const bool again = error.code == Code::kUnavailable && !failure.disconnected;
  return {again ? Answer::kAgain : Answer::kBroken, false, error.detail};
}

Outcome done_or(const MariaOutcome& outcome) {
  return outcome ? Outcome{Answer::kDone} : refusal(*outcome.failure);
}

std::optional<std::uint64_t> token_in(const MariaOutcome& outcome, std::string_view column) {
  return guard::parse_token(outcome.at(0, column).value_or(""));
}

const char* level_of(Isolation isolation) {
  switch (isolation) {
    case Isolation::kDefault:
    case Isolation::kReadCommitted:
      return "READ COMMITTED";
    case Isolation::kRepeatableRead:
      return "REPEATABLE READ";
    case Isolation::kSerializable:
      return "SERIALIZABLE";
  }
  return "";
}

class MariaSession final : public SqlSession {
 public:
  MariaSession(std::shared_ptr<MYSQL> connection, const Place& place)
      : SqlSession(place), connection_(std::move(connection)) {}

  // Forgets the token as well, as connections of a pool should.
  Outcome commit() override {
    const MariaOutcome outcome = call("finish", {});
    if (!outcome && outcome.failure->disconnected)
      return {Answer::kUnknown, false, outcome.failure->message};
    return done_or(outcome);
  }
  Outcome rollback() override { return done_or(call("abandon", {})); }
  Outcome execute(const std::string& statement) override { return done_or(ask(statement)); }

  void lose_commit() override {
    constexpr std::string_view kCommit = "COMMIT";
    mysql_send_query(connection_.get(), kCommit.data(), kCommit.size());
    connection_.reset();
  }
  void vanish() override { connection_.reset(); }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds wait) override {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    const MariaOutcome outcome =
        call("advance", {resource, std::to_string(token), std::to_string(seconds)});
    if (!outcome) return {refusal(*outcome.failure)};
    return {{Answer::kDone}, token_in(outcome, "before")};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const MariaOutcome outcome = call("check", {resource, std::to_string(token)});
    if (!outcome) return {refusal(*outcome.failure)};
    const std::string verdict = outcome.at(0, "verdict").value_or("");
    if (verdict == "unknown") return {{Answer::kUnguarded}};
    const MariaValue mode = outcome.at(0, "mode");
    Checked checked{to_outcome(verdict), token_in(outcome, "max")};
    checked.outcome.let_through =
        checked.outcome.let_through && (mode == "observe" || mode == "shadow");
    return checked;
  }

 protected:
  Outcome begin_at(Isolation isolation) override {
    const MariaOutcome set =
        ask(fmt::format("SET SESSION TRANSACTION ISOLATION LEVEL {}", level_of(isolation)));
    return done_or(set ? ask("START TRANSACTION") : set);
  }

  Outcome judge(const Admission& admission) override {
    const std::string verb = place().watched() ? "use" : "admit";
    const MariaOutcome outcome = [&] {
      if (admission.resources.size() > 1) {
        return ask(fmt::format("CALL pawl.use_all({}, {})",
                               guard::json_array(connection_.get(), admission.resources),
                               quoted(*admission.token)));
      }
      if (!admission.operation) return call(verb, {admission.resources.front(), admission.token});
      return call(verb + "_op", {admission.resources.front(), admission.token,
                                 std::to_string(*admission.operation)});
    }();
    if (!outcome) return refusal(*outcome.failure);
    return to_outcome(outcome.at(0, "verdict").value_or(""));
  }

  Outcome append(const Line& line) override {
    const std::string key = quoted(line.key);
    const std::string value = quoted(line.value);
    if (line.layout == Layout::kLines)
      return done_or(ask(fmt::format("INSERT INTO {} (resource, token, value) VALUES ({}, {}, {})",
                                     line.table, key, line.token, value)));
    return done_or(
        ask(fmt::format("INSERT INTO {0} (resource, log) VALUES ({1}, JSON_ARRAY(JSON_ARRAY({2}, "
                        "{3}))) ON DUPLICATE KEY "
                        "UPDATE log = JSON_ARRAY_APPEND(log, '$', JSON_ARRAY({2}, {3}))",
                        line.table, key, line.token, value)));
  }

  Outcome erase(const std::string& table, const std::string& key) override {
    return done_or(ask(fmt::format("DELETE FROM {} WHERE resource = {}", table, quoted(key))));
  }

 private:
  MariaOutcome ask(const std::string& sql) {
    PAWL_ASSERT(connection_ != nullptr);
    return guard::execute(connection_.get(), sql);
  }
  MariaOutcome call(std::string_view procedure, const std::vector<MariaValue>& values) {
    PAWL_ASSERT(connection_ != nullptr);
    return guard::call(connection_.get(), procedure, values);
  }
  [[nodiscard]] std::string quoted(const std::string& text) const {
    return guard::literal(connection_.get(), text);
  }

  std::shared_ptr<MYSQL> connection_;
};

}  // namespace

std::unique_ptr<Session> make_maria_session(std::shared_ptr<MYSQL> connection, const Place& place) {
  return std::make_unique<MariaSession>(std::move(connection), place);
}

}  // namespace pawl::conformance
