#include "conformance/postgres_session.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/postgres/failures.h"
#include "guard/words.h"

namespace pawl::conformance {
namespace {

using guard::PgOutcome;

Outcome broken(const PgFailure& failure) {
  return {Answer::kBroken, false, fmt::format("{} ({}) {}", failure.message, failure.state, failure.detail)};
}

// What a failed statement says.
Outcome refusal(const PgFailure& failure) {
  struct Known {
    std::string_view state;
    Answer answer;
  };
  static constexpr Known kKnown[] = {
      {guard::kStateMissing, Answer::kMissing},
      {guard::kStateStale, Answer::kStale},
      {guard::kStateMalformed, Answer::kMalformed},
      {guard::kStateUnknownResource, Answer::kUnguarded},
      {guard::kStateAhead, Answer::kAhead},
      {guard::kStateIsolation, Answer::kIsolation},
      {guard::kStateWaiting, Answer::kBusy},
      {guard::kStateDone, Answer::kReplayed},
      // A token is a bigint here: what cannot be one, PostgreSQL itself refuses before the guard sees it.
      {"22P02", Answer::kMalformed},
      {"22003", Answer::kMalformed},
  };
  if (guard::may_pass_again(failure)) return {Answer::kAgain, false, failure.message};
  for (const Known& known : kKnown) {
    if (failure.state == known.state) return {known.answer, false, failure.message + " " + failure.detail};
  }
  return broken(failure);
}

Outcome done_or(const PgOutcome& outcome) {
  return outcome ? Outcome{Answer::kDone} : refusal(*outcome.failure);
}

// A verdict that came as a value: the writer may go on.
Outcome verdict_of(const PgOutcome& outcome) {
  if (!outcome) return refusal(*outcome.failure);
  const std::string word = PgRows(outcome.result).at(0, 0).value_or("");
  const auto verdict = guard::parse_verdict(word);
  if (!verdict) return {Answer::kBroken, false, "the guard's verdict is \"" + word + "\""};
  const auto answer = *parse_answer(word);
  return {answer, *verdict > Verdict::kReplayed};
}

std::optional<std::uint64_t> token_in(const PgOutcome& outcome, std::size_t column) {
  return guard::parse_token(PgRows(outcome.result).at(0, column).value_or(""));
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

class PostgresSession final : public Session {
 public:
  PostgresSession(std::shared_ptr<PGconn> connection, PostgresPlace place)
      : connection_(std::move(connection)), place_(std::move(place)) {}

  Outcome begin(Isolation isolation) override {
    token_.reset();
    return done_or(ask(begin_sql(isolation)));
  }

  Outcome admit(const Admission& admission) override {
    token_ = admission.token;
    // What no use() was called for, the trigger judges when it comes to it.
    if (!admission.token) return {Answer::kMissing, true};
    if (place_.watched() && !guard::parse_token(*admission.token) && !admission.token->empty())
      return carry(admission);
    const std::string verb = place_.watched() || admission.resources.size() > 1 ? "use" : "admit";
    if (admission.resources.size() > 1) {
      return verdict_of(ask("SELECT pawl.use($1::text[], $2::bigint)",
                            {guard::array_of(admission.resources), *admission.token}));
    }
    if (!admission.operation) {
      return verdict_of(ask("SELECT pawl." + verb + "($1::text, $2::bigint)",
                            {admission.resources.front(), *admission.token}));
    }
    return verdict_of(
        ask("SELECT pawl." + verb + "($1::text, $2::bigint, $3::bigint)",
            {admission.resources.front(), *admission.token, std::to_string(*admission.operation)}));
  }

  Outcome apply(const std::string& resource, const std::string& value) override {
    return done_or(ask(apply_sql(resource), {place_.key_of(resource), token_or_zero(), value}));
  }

  Outcome commit() override {
    const PgOutcome outcome = ask("COMMIT");
    if (!outcome && outcome.failure->disconnected) return {Answer::kUnknown, false, outcome.failure->message};
    return done_or(outcome);
  }

  Outcome rollback() override { return done_or(ask("ROLLBACK")); }

  Outcome write(const Admission&, const std::string&) override {
    return {Answer::kBroken, false, "PostgreSQL writes in transactions"};
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

  Outcome remove(const std::string& resource, std::uint64_t token) override {
    Outcome outcome = begin(Isolation::kDefault);
    if (outcome.passed()) outcome = admit({{resource}, std::to_string(token), {}});
    if (outcome.passed()) {
      outcome = done_or(ask(fmt::format("DELETE FROM {} WHERE resource = $1", place_.table_of(resource)),
                            {place_.key_of(resource)}));
    }
    if (outcome.passed()) return commit();
    static_cast<void>(rollback());
    return outcome;
  }

 private:
  PgOutcome ask(const std::string& sql, const std::vector<PgValue>& parameters = {}) {
    PAWL_ASSERT(connection_ != nullptr);
    return guard::execute(connection_.get(), sql, parameters);
  }

  // As an application does that writes SET LOCAL instead of calling use(): nobody has looked at the text yet.
  Outcome carry(const Admission& admission) {
    Outcome outcome{Answer::kDone};
    for (const std::string& resource : admission.resources) {
      if (!outcome.passed()) break;
      outcome = done_or(ask("SELECT set_config('pawl.token.' || $1::text, $2::text, true)",
                            {PostgresPlace::guard_of(resource), *admission.token}));
    }
    return outcome;
  }

  [[nodiscard]] std::string apply_sql(const std::string& resource) const {
    const std::string table = place_.table_of(resource);
    if (place_.form != PostgresForm::kRow)
      return fmt::format("INSERT INTO {} (resource, token, value) VALUES ($1, $2::bigint, $3)", table);
    return fmt::format(
        "INSERT INTO {} AS t (resource, log) VALUES ($1, jsonb_build_array(jsonb_build_array($2::bigint, "
        "$3::text))) ON CONFLICT (resource) DO UPDATE SET log = t.log || excluded.log",
        table);
  }

  [[nodiscard]] std::string token_or_zero() const {
    return token_ && guard::parse_token(*token_) ? *token_ : "0";
  }

  std::shared_ptr<PGconn> connection_;
  const PostgresPlace place_;
  std::optional<std::string> token_;  // of the open transaction
};

}  // namespace

std::string PostgresPlace::guard_of(const std::string& resource) {
  return resource.substr(0, resource.find(':'));
}

std::string PostgresPlace::key_of(const std::string& resource) const {
  if (!watched()) return resource;
  const std::size_t colon = resource.find(':');
  return colon == resource.npos ? resource : resource.substr(colon + 1);
}

std::string PostgresPlace::table_of(const std::string& resource) const {
  return schema + "." + (watched() ? guard_of(resource) : "effects");
}

bool PostgresPlace::keyed() const {
  return form == PostgresForm::kKeyed || form == PostgresForm::kRow || form == PostgresForm::kBy;
}

bool PostgresPlace::watched() const {
  return form == PostgresForm::kTable || form == PostgresForm::kRow || form == PostgresForm::kBy;
}

std::unique_ptr<Session> make_postgres_session(std::shared_ptr<PGconn> connection,
                                               const PostgresPlace& place) {
  return std::make_unique<PostgresSession>(std::move(connection), place);
}

}  // namespace pawl::conformance
