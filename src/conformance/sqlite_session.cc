#include "conformance/sqlite_session.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/functions.h"
#include "guard/sqlite/statement.h"
#include "guard/words.h"

namespace pawl::conformance {
namespace {

using sqlite::Fault;
using sqlite::Statement;
using sqlite::Word;

// What a failed statement says: by its first word, as every driver can tell.
Outcome refusal(const Fault& fault) {
  struct Known {
    Word word;
    Answer answer;
  };
  static constexpr Known kKnown[] = {
      {Word::kStale, Answer::kStale},         {Word::kMissing, Answer::kMissing},
      {Word::kAhead, Answer::kAhead},         {Word::kReplayed, Answer::kReplayed},
      {Word::kMalformed, Answer::kMalformed}, {Word::kUnguarded, Answer::kUnguarded},
      {Word::kBusy, Answer::kAgain},
  };
  for (const Known& known : kKnown) {
    const std::string_view word = to_text(known.word);
    if (fault.word == known.word || fault.text.starts_with(fmt::format("{}:", word)))
      return {known.answer, false, fault.text};
  }
  return {Answer::kBroken, false, sqlite::message_of(fault)};
}

// A verdict that came as a value: the writer may go on.
Outcome verdict_of(const std::string& word) {
  const auto verdict = guard::parse_verdict(word);
  if (!verdict) return {Answer::kBroken, false, "the guard's verdict is \"" + word + "\""};
  return {*parse_answer(word), *verdict > Verdict::kReplayed};
}

class SqliteSession final : public Session {
 public:
  SqliteSession(std::shared_ptr<sqlite3> db, SqlitePlace place)
      : db_(std::move(db)), place_(std::move(place)) {}

  Outcome begin(Isolation) override {
    token_.reset();
    return run("BEGIN");  // Deferred, as most programs begin: pawl_use() takes the write lock.
  }

  Outcome admit(const Admission& admission) override {
    token_ = admission.token;
    // What pawl_use() was not called for, the trigger judges when it comes to it.
    if (!admission.token) return {Answer::kMissing, true};
    Outcome worst{Answer::kAdmitted};
    for (const std::string& resource : admission.resources) {
      const Outcome outcome = admit_one(resource, *admission.token, admission.operation);
      if (!outcome.passed() || outcome.let_through) worst = outcome;
      if (!outcome.passed()) break;
    }
    return worst;
  }

  Outcome apply(const std::string& resource, const std::string& value) override {
    return attempt([&]() -> Outcome {
      Statement(db_.get(), apply_sql(resource)).bind(place_.key_of(resource), token_or_zero(), value).run();
      return {Answer::kDone};
    });
  }

  Outcome commit() override { return run("COMMIT"); }
  Outcome rollback() override { return run("ROLLBACK"); }

  Outcome write(const Admission&, const std::string&) override {
    return {Answer::kBroken, false, "SQLite writes in transactions"};
  }
  void lose_commit() override { PAWL_ASSERT(false); }  // Not among the abilities: there is no wire to cut.
  void vanish() override { db_.reset(); }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds wait) override {
    Advanced advanced;
    const sqlite::Impatient impatient(db_.get());
    advanced.outcome = attempt([&]() -> Outcome {
      Statement asked(db_.get(), "SELECT pawl_advance(?1, ?2, ?3)");
      asked.bind(resource, static_cast<std::int64_t>(token), static_cast<std::int64_t>(wait.count())).step();
      if (!asked.null(0)) advanced.before = static_cast<std::uint64_t>(asked.number(0));
      return {Answer::kDone};
    });
    if (advanced.outcome.answer == Answer::kAgain) advanced.outcome.answer = Answer::kBusy;
    return advanced;
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    Checked checked;
    checked.outcome = attempt([&]() -> Outcome {
      const Decision decision = sqlite::check(*sqlite::session_of(db_.get()), resource, token);
      if (decision.max != 0) checked.max = decision.max;
      return {*parse_answer(to_text(decision.verdict)), decision.let_through};
    });
    return checked;
  }

  Outcome remove(const std::string& resource, std::uint64_t token) override {
    Outcome outcome = begin(Isolation::kDefault);
    if (outcome.passed()) outcome = admit({{resource}, std::to_string(token), {}});
    if (outcome.passed()) {
      outcome = attempt([&]() -> Outcome {
        Statement(db_.get(), fmt::format("DELETE FROM {} WHERE resource = ?1", place_.table_of(resource)))
            .bind(place_.key_of(resource))
            .run();
        return {Answer::kDone};
      });
    }
    if (outcome.passed()) return commit();
    static_cast<void>(rollback());
    return outcome;
  }

 private:
  template <class Step>
  Outcome attempt(const Step& step) {
    PAWL_ASSERT(db_ != nullptr);
    try {
      return step();
    } catch (const Fault& fault) {
      return refusal(fault);
    }
  }

  Outcome run(const char* sql) {
    return attempt([&]() -> Outcome {
      sqlite::execute(db_.get(), sql);
      return {Answer::kDone};
    });
  }

  Outcome admit_one(const std::string& resource, const std::string& token,
                    std::optional<std::uint64_t> operation) {
    return attempt([&] {
      const std::string verb = place_.watched() ? "pawl_use" : "pawl_admit";
      Statement asked(db_.get(), fmt::format("SELECT {}(?1, ?2{})", verb, operation ? ", ?3" : ""));
      asked.bind(resource, token);
      if (operation) asked.bind(resource, token, static_cast<std::int64_t>(*operation));
      asked.step();
      return verdict_of(asked.text(0));
    });
  }

  [[nodiscard]] std::string apply_sql(const std::string& resource) const {
    const std::string table = place_.table_of(resource);
    if (place_.form != SqliteForm::kRow)
      return fmt::format("INSERT INTO {} (resource, token, value) VALUES (?1, ?2, ?3)", table);
    return fmt::format(
        "INSERT INTO {} (resource, log) VALUES (?1, json_array(json_array(?2, ?3))) ON CONFLICT (resource) "
        "DO "
        "UPDATE SET log = json_insert(log, '$[#]', json_array(?2, ?3))",
        table);
  }

  [[nodiscard]] std::int64_t token_or_zero() const {
    return token_ ? static_cast<std::int64_t>(guard::parse_token(*token_).value_or(0)) : 0;
  }

  std::shared_ptr<sqlite3> db_;
  const SqlitePlace place_;
  std::optional<std::string> token_;  // of the open transaction
};

}  // namespace

std::string SqlitePlace::guard_of(const std::string& resource) {
  return resource.substr(0, resource.find(':'));
}

std::string SqlitePlace::key_of(const std::string& resource) const {
  const std::size_t colon = resource.find(':');
  return !watched() || colon == resource.npos ? resource : resource.substr(colon + 1);
}

std::string SqlitePlace::table_of(const std::string& resource) const {
  return watched() ? guard_of(resource) : prefix + "_effects";
}

bool SqlitePlace::keyed() const {
  return form == SqliteForm::kKeyed || form == SqliteForm::kRow || form == SqliteForm::kBy;
}

bool SqlitePlace::watched() const {
  return form >= SqliteForm::kTable;
}

std::unique_ptr<Session> make_sqlite_session(std::shared_ptr<sqlite3> db, const SqlitePlace& place) {
  return std::make_unique<SqliteSession>(std::move(db), place);
}

}  // namespace pawl::conformance
