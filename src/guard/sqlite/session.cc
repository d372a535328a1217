// One connection to a SQLite file as a Session.
#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/sql/session.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/connection_state.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/kind.h"
#include "guard/sqlite/statement.h"
#include "pawl/sqlite.h"

namespace pawl::guard {
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

// Denies BEGIN, COMMIT and ROLLBACK in this scope.
class NoCommit {
 public:
  explicit NoCommit(sqlite3* db) : db_(db) {
    sqlite3_set_authorizer(
        db,
        [](void* self, int action, const char*, const char*, const char*, const char*) {
          if (action != SQLITE_TRANSACTION) return SQLITE_OK;
          static_cast<NoCommit*>(self)->denied_ = true;
          return SQLITE_DENY;
        },
        this);
  }
  ~NoCommit() { sqlite3_set_authorizer(db_, nullptr, nullptr); }
  NoCommit(const NoCommit&) = delete;
  NoCommit& operator=(const NoCommit&) = delete;

  [[nodiscard]] bool denied() const { return denied_; }

 private:
  sqlite3* db_;
  bool denied_ = false;
};

class SqliteSession final : public SqlSession {
 public:
  SqliteSession(std::shared_ptr<sqlite3> db, const ScratchNames& names)
      : SqlSession(names), db_(std::move(db)), front_(db_.get()) {}

  Outcome commit() override { return run("COMMIT"); }
  Outcome rollback() override { return run("ROLLBACK"); }
  Outcome execute(const std::string& statement) override {
    const NoCommit no_commit(db_.get());
    const int before = sqlite3_total_changes(db_.get());
    Outcome outcome = run(statement.c_str());
    if (no_commit.denied())
      return {Answer::kBroken, false, "BEGIN, COMMIT and ROLLBACK are not possible here"};
    const bool changed = sqlite3_total_changes(db_.get()) != before;
    if (outcome.passed())
      outcome.rows = changed ? static_cast<std::uint64_t>(sqlite3_changes(db_.get())) : 0;
    return outcome;
  }
  [[nodiscard]] bool in_transaction() override { return sqlite3_get_autocommit(db_.get()) == 0; }

  [[nodiscard]] std::string admit_words() override {
    return names().watched() ? "pawl_use()" : "pawl_admit()";
  }
  [[nodiscard]] std::string carry_words(const std::string&) override {
    return admit_words() + ", going on after its error";
  }

  void vanish() override { db_.reset(); }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds wait) override {
    Advanced advanced;
    const sqlite::NoBusyTimeout no_busy_timeout(db_.get());
    advanced.outcome = attempt([&]() -> Outcome {
      Statement asked(db_.get(), "SELECT pawl_advance(?1, ?2, ?3)");
      asked
          .bind(resource, static_cast<std::int64_t>(token), static_cast<std::int64_t>(wait.count()))
          .step();
      if (!asked.null(0)) advanced.before = static_cast<std::uint64_t>(asked.number(0));
      return {Answer::kDone};
    });
    if (advanced.outcome.answer == Answer::kAgain) advanced.outcome.answer = Answer::kBusy;
    return advanced;
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    Checked checked;
    checked.outcome = attempt([&]() -> Outcome {
      const Decision decision = sqlite::check(*sqlite::state_of(db_.get()), resource, token);
      if (decision.max != 0) checked.max = decision.max;
      return {*parse_answer(to_text(decision.verdict)), decision.let_through};
    });
    return checked;
  }

  [[nodiscard]] Guard* front() override { return &front_; }
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    SqliteWriteOptions options;
    if (write.operation != 0) options.operation = write.operation;
    const auto work = [&] {
      return sqlite3_exec(db_.get(), write.statement().c_str(), nullptr, nullptr, nullptr);
    };
    return front_.write(lease, write.resource, work, options);
  }

 protected:
  Outcome begin_at(Isolation) override {
    return run("BEGIN");  // Deferred, as most programs begin: pawl_use() takes the write lock.
  }

  Outcome judge(const Admission& admission) override {
    Outcome worst{Answer::kAdmitted};
    for (const std::string& resource : admission.resources) {
      const Outcome outcome = admit_one(resource, *admission.token, admission.operation);
      if (!outcome.passed() || outcome.let_through) worst = outcome;
      if (!outcome.passed()) break;
    }
    return worst;
  }

  // The token stays on the connection also when it was refused.
  Outcome hand_over(const Admission& admission) override {
    const Outcome outcome = judge(admission);
    return outcome.answer == Answer::kBroken || outcome.answer == Answer::kAgain
               ? outcome
               : Outcome{Answer::kDone};
  }

  Outcome append(const Line& line) override {
    return attempt([&]() -> Outcome {
      Statement(db_.get(), append_sql(line))
          .bind(line.key, static_cast<std::int64_t>(line.token), line.value)
          .run();
      return {Answer::kDone};
    });
  }

  Outcome erase(const std::string& table, const std::string& key) override {
    return attempt([&]() -> Outcome {
      Statement(db_.get(), fmt::format("DELETE FROM {} WHERE resource = ?1", table))
          .bind(key)
          .run();
      return {Answer::kDone};
    });
  }

  Outcome rename(const std::string& table, const std::string& from,
                 const std::string& to) override {
    return attempt([&]() -> Outcome {
      Statement(db_.get(), fmt::format("UPDATE {} SET resource = ?2 WHERE resource = ?1", table))
          .bind(from, to)
          .run();
      return {Answer::kDone};
    });
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
      const std::string verb = names().watched() ? "pawl_use" : "pawl_admit";
      Statement asked(db_.get(), fmt::format("SELECT {}(?1, ?2{})", verb, operation ? ", ?3" : ""));
      asked.bind(resource, token);
      if (operation) asked.bind(resource, token, static_cast<std::int64_t>(*operation));
      asked.step();
      return outcome_of_verdict(asked.text(0));
    });
  }

  static std::string append_sql(const Line& line) {
    if (line.layout == Layout::kLines)
      return fmt::format("INSERT INTO {} (resource, token, value) VALUES (?1, ?2, ?3)", line.table);
    return fmt::format(
        "INSERT INTO {} (resource, log) VALUES (?1, json_array(json_array(?2, ?3))) ON CONFLICT "
        "(resource) "
        "DO UPDATE SET log = json_insert(log, '$[#]', json_array(?2, ?3))",
        line.table);
  }

  std::shared_ptr<sqlite3> db_;
  SqliteGuard front_;
};

}  // namespace

std::unique_ptr<Session> make_sqlite_session(std::shared_ptr<sqlite3> db,
                                             const ScratchNames& names) {
  return std::make_unique<SqliteSession>(std::move(db), names);
}

}  // namespace pawl::guard
