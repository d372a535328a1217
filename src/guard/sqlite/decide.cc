#include "guard/sqlite/decide.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "base/limits.h"
#include "guard/sqlite/emergency.h"
#include "guard/sqlite/fault.h"

namespace pawl::sqlite {
namespace {

using std::chrono::milliseconds;

Word word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kStale:
      return Word::kStale;
    case Verdict::kMissing:
      return Word::kMissing;
    case Verdict::kAhead:
      return Word::kAhead;
    case Verdict::kReplayed:
    case Verdict::kAdmitted:
      break;
  }
  return Word::kReplayed;
}

// Once only: by its number, or where the policy says so by the token itself.
Verdict claim(ConnectionState& state, const Named& named, std::uint64_t token,
              std::optional<std::uint64_t> operation) {
  if (operation) {
    if (!named.store.claim(named.guard.id, named.key, token, *operation)) return Verdict::kReplayed;
    state.note_claim(named, token);
    return Verdict::kAdmitted;
  }
  if (named.guard.equal == "accept") return Verdict::kAdmitted;
  const bool first = named.store.claim(named.guard.id, named.key, token, 0);
  if (!first && !state.has_claimed(named, token))
    return named.guard.equal == "once" ? Verdict::kMissing : Verdict::kStale;
  state.note_claim(named, token);
  return Verdict::kAdmitted;
}

void let_through(ConnectionState& state, const Named& named, Verdict verdict,
                 std::optional<std::uint64_t> token, bool counts) {
  if (!state.note(named, fmt::format("{} {}", to_text(verdict), token.value_or(0)))) return;
  named.store.count(named.guard.id, to_text(verdict), 1);
  if (verdict == Verdict::kMissing && !token) named.store.sight(named.guard.id, "tokenless");
  if (counts && named.guard.mode != GuardMode::kObserve)
    named.store.count(named.guard.id, "would_refuse", 1);
}

bool refuses(const Named& named) {
  return enforces(named.guard.mode, named.guard.percent, resource_of(named.guard, named.key)) &&
         effective_mode(named) == named.guard.mode;
}

// Of what was not admitted: refuses, or lets through and counts.
Verdict settle(ConnectionState& state, const Named& named, Verdict verdict,
               std::optional<std::uint64_t> token, std::uint64_t fence) {
  const bool owed = named.guard.require_token || state.has_used_a_token(named);
  const bool wrong = refusable(verdict, token.has_value(), owed);
  const std::string resource = resource_of(named.guard, named.key);
  if (wrong && refuses(named)) {
    state.refused(named, to_text(verdict), token, fence);
    fail(word_of(verdict), explain(verdict, resource, token, fence));
  }
  let_through(state, named, verdict, token, wrong);
  return verdict;
}

// A commit that a power cut takes back takes the fence back with it. Operators should know which
// programs write like that.
void note_synchronous_setting(ConnectionState& state, const Named& named) {
  if (!state.note_synchronous(named)) return;
  Statement asked(state.db(), fmt::format("PRAGMA {}.synchronous", quoted(named.store.schema())));
  if (asked.step() && asked.number(0) < 2) named.store.sight(named.guard.id, "synchronous");
}

// BEGIN IMMEDIATE and COMMIT may each find others in their way.
void execute_when_free(sqlite3* db, const char* sql, milliseconds wait) {
  constexpr int kStepMs = 5;
  const auto until = std::chrono::steady_clock::now() + wait;
  while (true) {
    const int rc = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    if (rc == SQLITE_OK) return;
    if ((rc & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() >= until)
      fail_with(db, sqlite3_extended_errcode(db));
    sqlite3_sleep(kStepMs);
  }
}

// FULL while it lives: an advance is durable when it is answered, whatever the connection does
// otherwise.
class Durable {
 public:
  Durable(sqlite3* db, const std::string& schema)
      : db_(db), pragma_(fmt::format("PRAGMA {}.synchronous", quoted(schema))) {
    Statement asked(db, pragma_);
    if (asked.step()) before_ = asked.number(0);
    asked.reset();
    if (before_ < 2) execute(db_, pragma_ + " = FULL");
  }
  ~Durable() {
    if (before_ < 2)
      sqlite3_exec(db_, fmt::format("{} = {}", pragma_, before_).c_str(), nullptr, nullptr,
                   nullptr);
  }
  Durable(const Durable&) = delete;
  Durable& operator=(const Durable&) = delete;

 private:
  sqlite3* db_;
  std::string pragma_;
  std::int64_t before_ = 2;
};

std::uint64_t advance_locked(ConnectionState& state, std::string_view resource,
                             std::uint64_t token) {
  const Named named = state.find(resource);
  const std::uint64_t fence = state.fence(named);
  const Verdict verdict = judge(token, fence, named.guard.max_step);
  if (verdict != Verdict::kAdmitted)  // In every mode: an advance lets nothing through.
    fail(word_of(verdict), explain(verdict, resource, token, fence));
  if (token > fence) named.store.raise_fence(named.guard.id, named.key, token);
  return fence;
}

}  // namespace

GuardMode effective_mode(const Named& named) {
  const bool off = named.guard.mode >= GuardMode::kCanary &&
                   find_switched(named.store.path(), {named.store.installation(), named.guard.id,
                                                      named.guard.generation});
  return off ? GuardMode::kShadow : named.guard.mode;
}

Verdict admit(ConnectionState& state, const Named& before, std::uint64_t token,
              std::optional<std::uint64_t> operation, Carry carry) {
  PAWL_ASSERT(sqlite3_get_autocommit(state.db()) == 0);   // Check and write are one transaction.
  PAWL_ASSERT(token >= 1 && token <= limits::kTokenMax);  // The callers refuse all others.
  // In main join() has taken the write lock. Elsewhere it is taken here, and the guard is read
  // again because it may have changed before.
  const bool locked = before.store.schema() == "main";
  if (!locked) before.store.lock();
  const Named named =
      locked ? before : state.find(before.store.installation(), before.guard.id, before.key);
  note_synchronous_setting(state, named);
  const std::uint64_t fence = state.fence(named);
  Verdict verdict = judge(token, fence, named.guard.max_step);
  if (verdict == Verdict::kAdmitted) verdict = claim(state, named, token, operation);
  if (verdict == Verdict::kAdmitted && token > fence)
    named.store.raise_fence(named.guard.id, named.key, token);
  // Also a refused one: a program that ignores the refusal and writes on must not pass for a writer
  // without a token.
  if (carry == Carry::kYes) state.carry(named, {token, operation, verdict == Verdict::kReplayed});
  if (verdict == Verdict::kReplayed) {
    state.refused(named, to_text(verdict), token,
                  fence);  // Its transaction may well be rolled back.
  } else if (verdict != Verdict::kAdmitted) {
    settle(state, named, verdict, token, fence);
  }
  return verdict;
}

void insist_on_journal(ConnectionState& state, const Named& named) {
  Statement asked(state.db(), fmt::format("PRAGMA {}.journal_mode", quoted(named.store.schema())));
  if (asked.step() && asked.text(0) == "off" && refuses(named))
    fail(
        Word::kInvalid,
        fmt::format("journal_mode is OFF in this connection, so a refused write to {} could not be "
                    "undone: PRAGMA journal_mode = WAL, or DELETE",
                    named.guard.name));
}

namespace {

void insist_on_unchanged_table(ConnectionState& state, const Named& named) {
  if (!named.guard.keyed() || !refuses(named)) return;
  if (const std::string& how = state.changed_table(named); !how.empty())
    fail(Word::kInvalid, fmt::format("{}. Run: pawl guard install sqlite", how));
}

}  // namespace

void judge_write(ConnectionState& state, const Named& named) {
  state.join();
  if (state.note(named, "journal")) {
    try {
      insist_on_journal(state, named);
      insist_on_unchanged_table(state, named);
    } catch (const Fault&) {
      state.forget_note(named, "journal");  // The next write is refused as well.
      throw;
    }
  }
  const Carried* carried = state.carried(named);
  const std::uint64_t fence = state.fence(named);
  if (carried == nullptr) {
    note_synchronous_setting(state, named);
    settle(state, named, Verdict::kMissing, {}, fence);
    return;
  }
  if (carried->malformed) refuse_malformed(state, named, "malformed token");
  if (carried->replayed) {
    settle(state, named, Verdict::kReplayed, carried->token, fence);
    return;
  }
  const Verdict verdict = judge(carried->token, fence, named.guard.max_step);
  if (verdict != Verdict::kAdmitted) {
    settle(state, named, verdict, carried->token, fence);
    return;
  }
  // A rollback to a savepoint may have taken back what pawl_use() wrote; the write that follows
  // must not go without.
  if (carried->token > fence) named.store.raise_fence(named.guard.id, named.key, carried->token);
  if (carried->operation || named.guard.equal != "accept")
    static_cast<void>(named.store.claim(named.guard.id, named.key, carried->token,
                                        carried->operation.value_or(0)));
}

std::uint64_t advance(ConnectionState& state, std::string_view resource, std::uint64_t token,
                      milliseconds wait) {
  sqlite3* db = state.db();
  if (sqlite3_get_autocommit(db) == 0)
    fail(Word::kTransaction,
         "pawl_advance is a transaction of its own, and one is open: end it first, or call "
         "pawl_use() in it");
  const Durable durable(db, state.find(resource).store.schema());
  execute_when_free(db, "BEGIN IMMEDIATE", wait);
  try {
    const std::uint64_t before = advance_locked(state, resource, token);
    execute_when_free(db, "COMMIT", wait);
    return before;
  } catch (const Fault&) {
    sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

Decision check(ConnectionState& state, std::string_view resource, std::uint64_t token) {
  const Named named = state.find(resource);
  Decision decision;
  decision.token = token;
  decision.max = state.fence(named);
  decision.verdict = judge(token, decision.max, named.guard.max_step);
  decision.mode = effective_mode(named);
  decision.let_through =
      decision.verdict != Verdict::kAdmitted &&
      !enforces(*decision.mode, named.guard.percent, resource_of(named.guard, named.key));
  return decision;
}

void refuse_malformed(ConnectionState& state, const Named& named, std::string_view what) {
  state.carry(named, {.malformed = true});
  state.refused(named, "malformed", {}, 0);
  fail(Word::kMalformed,
       fmt::format(
           "{} for {}. A token is a whole number from 1 to 9007199254740991, as text without sign, "
           "space or leading zero; an operation number is one from 1 on",
           what, resource_of(named.guard, named.key)));
}

}  // namespace pawl::sqlite
