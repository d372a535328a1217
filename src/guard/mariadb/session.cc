// One connection to MariaDB as a Session.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "guard/mariadb/connection.h"
#include "guard/mariadb/kind.h"
#include "guard/sql/session.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

// What a failed statement says.
Outcome refusal(const MariaFailure& failure) {
  if (const auto known = answer_of_state(failure.state)) return {*known, false, failure.message};
  const Error error = to_error(failure);
  const bool again = error.code == Code::kUnavailable && !failure.disconnected;
  return {again ? Answer::kAgain : Answer::kBroken, false, error.detail};
}

Outcome done_or(const MariaOutcome& outcome) {
  return outcome ? Outcome{Answer::kDone} : refusal(*outcome.failure);
}

std::optional<std::uint64_t> token_in(const MariaOutcome& outcome, std::string_view column) {
  return parse_token(outcome.at(0, column).value_or(""));
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

// Those that do not commit by themselves, as DDL and TRUNCATE do.
constexpr std::array<std::string_view, 8> kStatements{"INSERT", "UPDATE", "DELETE", "REPLACE",
                                                      "LOAD",   "WITH",   "SELECT", "CALL"};

bool stays_in_transaction(std::string_view statement) {
  const std::size_t begin = statement.find_first_not_of(" \t\r\n(");
  if (begin == statement.npos) return false;
  statement.remove_prefix(begin);
  return std::any_of(kStatements.begin(), kStatements.end(), [&](std::string_view verb) {
    return statement.size() > verb.size() &&
           ::strncasecmp(statement.data(), verb.data(), verb.size()) == 0;
  });
}

class MariaSession final : public SqlSession {
 public:
  MariaSession(std::shared_ptr<MYSQL> connection, const ScratchNames& names)
      : SqlSession(names), connection_(std::move(connection)), front_(connection_.get()) {}

  // Forgets the token as well, as connections of a pool should.
  Outcome commit() override {
    const MariaOutcome outcome = call("finish", {});
    if (!outcome && outcome.failure->disconnected)
      return {Answer::kUnknown, false, outcome.failure->message};
    return done_or(outcome);
  }
  Outcome rollback() override { return done_or(call("abandon", {})); }
  Outcome execute(const std::string& statement) override {
    if (!stays_in_transaction(statement))
      return {Answer::kBroken, false,
              fmt::format("only {} are possible here: other statements may commit",
                          fmt::join(kStatements, ", "))};
    const MariaOutcome outcome = ask(statement);
    Outcome done = done_or(outcome);
    if (outcome && outcome.columns.empty()) done.rows = rows_matched(outcome);
    return done;
  }
  [[nodiscard]] bool in_transaction() override { return guard::in_transaction(connection_.get()); }

  [[nodiscard]] std::string admit_words() override {
    return names().watched() ? "CALL pawl.use()" : "CALL pawl.admit()";
  }
  [[nodiscard]] std::string carry_words(const std::string&) override {
    return admit_words() + ", going on after its error";
  }

  Outcome prepare(const std::string& name) override {
    prepared_here_ = name;
    const MariaOutcome ended = ask("XA END " + xid(name));
    return done_or(ended ? ask("XA PREPARE " + xid(name)) : ended);
  }
  Outcome commit_prepared(const std::string& name) override {
    return end_prepared("XA COMMIT ", name);
  }
  Outcome roll_back_prepared(const std::string& name) override {
    return end_prepared("XA ROLLBACK ", name);
  }

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
    Checked checked{outcome_of_verdict(verdict), token_in(outcome, "max")};
    checked.outcome.let_through =
        checked.outcome.let_through && (mode == "observe" || mode == "shadow");
    return checked;
  }

  [[nodiscard]] bool connected() const override {
    return connection_ != nullptr && mysql_ping(connection_.get()) == 0;
  }
  [[nodiscard]] Guard* front() override { return &front_; }
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    const auto work = [&](MariaTransaction& tx) { tx.exec(write.statement()); };
    return front_.write(lease, write.resource, work, {.operation = write.operation});
  }

 protected:
  Outcome begin_at(Isolation isolation) override {
    const MariaOutcome set = set_level(isolation);
    return done_or(set ? ask("START TRANSACTION") : set);
  }

  Outcome begin_named(Isolation isolation, const std::string& name) override {
    const MariaOutcome set = set_level(isolation);
    return done_or(set ? ask("XA START " + xid(name)) : set);
  }

  Outcome judge(const Admission& admission) override {
    const std::string verb = names().watched() ? "use" : "admit";
    const MariaOutcome outcome = [&] {
      if (admission.resources.size() > 1) {
        return ask(fmt::format("CALL pawl.use_all({}, {})",
                               json_array(connection_.get(), admission.resources),
                               quoted(*admission.token)));
      }
      if (!admission.operation) return call(verb, {admission.resources.front(), admission.token});
      return call(verb + "_op", {admission.resources.front(), admission.token,
                                 std::to_string(*admission.operation)});
    }();
    if (!outcome) return refusal(*outcome.failure);
    return outcome_of_verdict(outcome.at(0, "verdict").value_or(""));
  }

  // The token stays on the connection also when it was refused.
  Outcome hand_over(const Admission& admission) override {
    const Outcome outcome = judge(admission);
    return outcome.answer == Answer::kBroken || outcome.answer == Answer::kAgain
               ? outcome
               : Outcome{Answer::kDone};
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

  Outcome rename(const std::string& table, const std::string& from,
                 const std::string& to) override {
    return done_or(ask(fmt::format("UPDATE {} SET resource = {} WHERE resource = {}", table,
                                   quoted(to), quoted(from))));
  }

 private:
  MariaOutcome set_level(Isolation isolation) {
    return ask(fmt::format("SET SESSION TRANSACTION ISOLATION LEVEL {}", level_of(isolation)));
  }

  // An XA identifier has at most 64 bytes, and is the server's own.
  [[nodiscard]] std::string xid(const std::string& name) const {
    constexpr std::size_t kXidMax = 64;
    return quoted(name.size() <= kXidMax ? name : name.substr(name.size() - kXidMax));
  }

  // The server knows a prepared transaction of a session that has hung up by its name only when it
  // has noticed.
  Outcome end_prepared(const std::string& verb, const std::string& name) {
    using namespace std::chrono_literals;
    constexpr unsigned kUnknownXid = 1397;
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    const auto pause = [&](std::chrono::milliseconds time) {
      std::this_thread::sleep_for(time);
      return std::chrono::steady_clock::now() < deadline;
    };
    // innodb_trx shows the same for 100 ms.
    while (name != prepared_here_ && pause(150ms) && !has_detached_transaction()) {
    }
    MariaOutcome outcome = ask(verb + xid(name));
    while (!outcome && outcome.failure->number == kUnknownXid && pause(10ms))
      outcome = ask(verb + xid(name));
    return done_or(outcome);
  }
  // While the server still closes the session that prepared a transaction, it answers that it was
  // committed, and leaves it prepared.
  bool has_detached_transaction() {
    const MariaOutcome found =
        ask("SELECT 1 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = 0 LIMIT 1");
    return !found || !found.rows.empty();  // Without the right to look it cannot be told.
  }

  MariaOutcome ask(const std::string& sql) {
    PAWL_ASSERT(connection_ != nullptr);
    return guard::execute(connection_.get(), sql);
  }
  MariaOutcome call(std::string_view procedure, const std::vector<MariaValue>& values) {
    PAWL_ASSERT(connection_ != nullptr);
    return guard::call(connection_.get(), procedure, values);
  }
  // An UPDATE counts a row that it leaves as it was as not affected, but a trigger has judged it.
  std::uint64_t rows_matched(const MariaOutcome& outcome) {
    constexpr std::string_view kMatched = "Rows matched: ";
    const char* info = mysql_info(connection_.get());
    const std::string_view text = info == nullptr ? "" : info;
    const std::size_t at = text.find(kMatched);
    if (at == text.npos) return outcome.affected;
    return std::strtoull(text.data() + at + kMatched.size(), nullptr, 10);
  }
  [[nodiscard]] std::string quoted(const std::string& text) const {
    return literal(connection_.get(), text);
  }

  std::shared_ptr<MYSQL> connection_;
  MariaGuard front_;
  std::string prepared_here_;  // the name of the transaction that this session prepared last
};

}  // namespace

std::unique_ptr<Session> make_maria_session(std::shared_ptr<MYSQL> connection,
                                            const ScratchNames& names) {
  return std::make_unique<MariaSession>(std::move(connection), names);
}

}  // namespace pawl::guard
