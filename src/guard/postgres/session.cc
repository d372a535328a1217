// One connection to PostgreSQL as a Session.
#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/postgres/connection.h"
#include "guard/postgres/kind.h"
#include "guard/sql/session.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

Outcome broken(const PgFailure& failure) {
  return {Answer::kBroken, false,
          fmt::format("{} ({}) {}", failure.message, failure.state, failure.detail)};
}

// What a failed statement says.
Outcome refusal(const PgFailure& failure) {
  if (may_pass_again(failure)) return {Answer::kAgain, false, failure.message};
  if (const auto known = answer_of_state(failure.state))
    return {*known, false, failure.message + " " + failure.detail};
  // A token is a bigint here: what cannot be one, PostgreSQL itself refuses before the guard sees
  // it.
  if (failure.state == "22P02" || failure.state == "22003")
    return {Answer::kMalformed, false, failure.message};
  return broken(failure);
}

Outcome done_or(const PgOutcome& outcome) {
  return outcome ? Outcome{Answer::kDone} : refusal(*outcome.failure);
}

Outcome verdict_of(const PgOutcome& outcome) {
  if (!outcome) return refusal(*outcome.failure);
  return outcome_of_verdict(PgRows(outcome.result).at(0, 0).value_or(""));
}

std::optional<std::uint64_t> token_in(const PgOutcome& outcome, std::size_t column) {
  return parse_token(PgRows(outcome.result).at(0, column).value_or(""));
}

// Of a statement that changes rows itself; nothing for others, such as a call of a function.
std::optional<std::uint64_t> rows_changed(const PgOutcome& outcome) {
  const std::string_view tag = PQcmdStatus(outcome.result.get());
  for (const std::string_view verb : {"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"}) {
    if (tag.starts_with(verb)) return PgRows(outcome.result).affected();
  }
  return std::nullopt;
}

std::string begin_sql(Isolation isolation) {
  switch (isolation) {
    case Isolation::kDefault:
      return "BEGIN";
    case Isolation::kReadCommitted:
      return "BEGIN ISOLATION LEVEL READ COMMITTED";
    case Isolation::kRepeatableRead:
      return "BEGIN ISOLATION LEVEL REPEATABLE READ";
    case Isolation::kSerializable:
      return "BEGIN ISOLATION LEVEL SERIALIZABLE";
  }
  return {};
}

class PostgresSession final : public SqlSession {
 public:
  PostgresSession(std::shared_ptr<PGconn> connection, const ScratchNames& names)
      : SqlSession(names), connection_(std::move(connection)), front_(connection_.get()) {}

  Outcome commit() override {
    const PgOutcome outcome = ask("COMMIT");
    if (!outcome && outcome.failure->disconnected)
      return {Answer::kUnknown, false, outcome.failure->message};
    return done_or(outcome);
  }

  Outcome rollback() override { return done_or(ask("ROLLBACK")); }
  Outcome execute(const std::string& statement) override {
    const PgOutcome outcome = ask(statement);
    Outcome done = done_or(outcome);
    if (outcome) done.rows = rows_changed(outcome);
    return done;
  }
  [[nodiscard]] bool in_transaction() override {
    const PGTransactionStatusType status = PQtransactionStatus(connection_.get());
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
  }

  [[nodiscard]] std::string admit_words() override {
    return names().watched() ? "pawl.use()" : "pawl.admit()";
  }
  [[nodiscard]] std::string carry_words(const std::string& resource) override {
    const PgOutcome setting = ask("SELECT setting FROM pawl.guard WHERE name = $1::text",
                                  {ScratchNames::guard_of(resource)});
    return setting ? "SET LOCAL " + PgRows(setting.result).at(0, 0).value_or("") : std::string();
  }

  Outcome prepare(const std::string& name) override {
    return done_or(ask("PREPARE TRANSACTION " + literal(connection_.get(), name)));
  }
  Outcome commit_prepared(const std::string& name) override {
    return done_or(ask("COMMIT PREPARED " + literal(connection_.get(), name)));
  }
  Outcome roll_back_prepared(const std::string& name) override {
    return done_or(ask("ROLLBACK PREPARED " + literal(connection_.get(), name)));
  }

  void lose_commit() override {
    PQsendQuery(connection_.get(), "COMMIT");
    while (PQflush(connection_.get()) == 1) {
    }
    connection_.reset();
  }

  void vanish() override { connection_.reset(); }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds wait) override {
    const PgOutcome outcome =
        ask("SELECT pawl.advance($1::text, $2::bigint, $3::interval)",
            {resource, std::to_string(token), fmt::format("{} milliseconds", wait.count())});
    if (!outcome) return {refusal(*outcome.failure)};
    return {{Answer::kDone}, token_in(outcome, 0)};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const PgOutcome outcome = ask("SELECT verdict, max, mode FROM pawl.check($1::text, $2::bigint)",
                                  {resource, std::to_string(token)});
    Outcome verdict = verdict_of(outcome);
    if (!outcome) return {verdict};
    const std::string mode = PgRows(outcome.result).at(0, 2).value_or("");
    verdict.let_through = verdict.let_through && (mode == "observe" || mode == "shadow");
    return {verdict, token_in(outcome, 1)};
  }

  [[nodiscard]] bool connected() const override {
    return connection_ != nullptr && PQstatus(connection_.get()) == CONNECTION_OK;
  }
  [[nodiscard]] Guard* front() override { return &front_; }
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    const auto work = [&](PgTransaction& tx) { tx.exec(write.statement()); };
    return front_.write(lease, write.resource, work, {.operation = write.operation});
  }

 protected:
  Outcome begin_at(Isolation isolation) override { return done_or(ask(begin_sql(isolation))); }

  Outcome begin_named(Isolation isolation, const std::string&) override {
    return begin_at(isolation);  // PREPARE TRANSACTION gives the name.
  }

  Outcome judge(const Admission& admission) override {
    const bool odd = !parse_token(*admission.token) && !admission.token->empty();
    if (names().watched() && (odd || admission.carried)) return hand_over(admission);
    const std::string verb = names().watched() || admission.resources.size() > 1 ? "use" : "admit";
    if (admission.resources.size() > 1) {
      return verdict_of(ask("SELECT pawl.use($1::text[], $2::bigint)",
                            {array_of(admission.resources), *admission.token}));
    }
    if (!admission.operation) {
      return verdict_of(ask("SELECT pawl." + verb + "($1::text, $2::bigint)",
                            {admission.resources.front(), *admission.token}));
    }
    return verdict_of(
        ask("SELECT pawl." + verb + "($1::text, $2::bigint, $3::bigint)",
            {admission.resources.front(), *admission.token, std::to_string(*admission.operation)}));
  }

  // As an application does that writes SET LOCAL instead of calling use(): the token is not checked
  // before the write.
  Outcome hand_over(const Admission& admission) override {
    Outcome outcome{Answer::kDone};
    for (const std::string& resource : admission.resources) {
      if (!outcome.passed()) break;
      outcome = done_or(
          ask("SELECT set_config(setting, $2::text, true) FROM pawl.guard WHERE name = $1::text",
              {ScratchNames::guard_of(resource), *admission.token}));
    }
    return outcome;
  }

  Outcome append(const Line& line) override {
    return done_or(ask(append_sql(line), {line.key, std::to_string(line.token), line.value}));
  }

  Outcome erase(const std::string& table, const std::string& key) override {
    return done_or(ask(fmt::format("DELETE FROM {} WHERE resource = $1", table), {key}));
  }

  Outcome rename(const std::string& table, const std::string& from,
                 const std::string& to) override {
    return done_or(
        ask(fmt::format("UPDATE {} SET resource = $2 WHERE resource = $1", table), {from, to}));
  }

 private:
  PgOutcome ask(const std::string& sql, const std::vector<PgValue>& parameters = {}) {
    PAWL_ASSERT(connection_ != nullptr);
    return guard::execute(connection_.get(), sql, parameters);
  }

  static std::string append_sql(const Line& line) {
    if (line.layout == Layout::kLines)
      return fmt::format("INSERT INTO {} (resource, token, value) VALUES ($1, $2::bigint, $3)",
                         line.table);
    return fmt::format(
        "INSERT INTO {} AS t (resource, log) VALUES ($1, "
        "jsonb_build_array(jsonb_build_array($2::bigint, "
        "$3::text))) ON CONFLICT (resource) DO UPDATE SET log = t.log || excluded.log",
        line.table);
  }

  std::shared_ptr<PGconn> connection_;
  PgGuard front_;
};

}  // namespace

std::unique_ptr<Session> make_postgres_session(std::shared_ptr<PGconn> connection,
                                               const ScratchNames& names) {
  return std::make_unique<PostgresSession>(std::move(connection), names);
}

}  // namespace pawl::guard
