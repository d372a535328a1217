#include "guard/session.h"

#include <array>

#include "base/assert.h"
#include "guard/scratch.h"

namespace pawl::guard {
namespace {

constexpr std::array<std::string_view, kAbilityCount> kAbilities{
    "transactions",  "read_committed", "repeatable_read", "serializable", "concurrency",
    "operation_set", "operation_last", "several",         "text_tokens",  "tokenless",
    "unguarded",     "modes",          "canary",          "emergency",    "require_token",
    "max_step",      "equal_once",     "equal_refuse",    "counts",       "remove",
    "compact",       "lost_commit",    "vanish",          "prepared",     "spellings",
    "moves",         "elsewhere",      "rehearsal",       "unreachable",  "enclosed"};
constexpr std::array<std::string_view, 13> kAnswers{
    "admitted", "replayed",  "stale", "missing", "ahead",   "malformed", "unguarded",
    "done",     "isolation", "again", "busy",    "unknown", "broken"};
constexpr std::array<std::string_view, 4> kIsolations{"default", "read_committed",
                                                      "repeatable_read", "serializable"};
constexpr std::array<std::string_view, 3> kEquals{"accept", "once", "refuse"};

template <class Word, std::size_t n>
std::optional<Word> find_word(const std::array<std::string_view, n>& words, std::string_view text) {
  for (std::size_t i = 0; i < n; ++i) {
    if (words[i] == text) return static_cast<Word>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_text(Ability ability) {
  return kAbilities.at(static_cast<std::size_t>(ability));
}

std::optional<Ability> parse_ability(std::string_view text) {
  return find_word<Ability>(kAbilities, text);
}

std::string_view to_text(Answer answer) {
  return kAnswers.at(static_cast<std::size_t>(answer));
}

std::optional<Answer> parse_answer(std::string_view text) {
  return find_word<Answer>(kAnswers, text);
}

std::string_view to_text(Isolation isolation) {
  return kIsolations.at(static_cast<std::size_t>(isolation));
}

std::string_view to_text(Equal equal) {
  return kEquals.at(static_cast<std::size_t>(equal));
}

std::vector<Ability> Abilities::list() const {
  std::vector<Ability> all;
  for (std::size_t i = 0; i < kAbilityCount; ++i) {
    if (const auto ability = static_cast<Ability>(i); has(ability)) all.push_back(ability);
  }
  return all;
}

Outcome to_outcome(const Result<Decision>& decision) {
  if (decision) return {*parse_answer(to_text(decision->verdict)), decision->let_through, {}};
  switch (decision.error().code) {
    case Code::kStaleToken:
    case Code::kIssuerBehind:
      return {Answer::kStale, false, decision.error().detail};
    case Code::kUnknown:
      return {Answer::kUnknown, false, decision.error().detail};
    default:
      return {Answer::kBroken, false, decision.error().detail};
  }
}

// --- What a session cannot do unless it overrides it ---------------------------------------------

namespace {

Outcome unable(std::string_view step) {
  return {Answer::kBroken, false, "this guard has no " + std::string(step)};
}

}  // namespace

Outcome Session::begin(Isolation) {
  return unable("transactions: it writes in one step");
}
Outcome Session::admit(const Admission&) {
  return unable("transactions: it writes in one step");
}
Outcome Session::carry(const Admission&) {
  return unable("way to give a token without asking");
}
std::string Session::admit_words() {
  return {};
}
std::string Session::carry_words(const std::string&) {
  return {};
}
bool Session::in_transaction() {
  return false;
}
Outcome Session::apply(const std::string&, const std::string&) {
  return unable("transactions: it writes in one step");
}
Outcome Session::execute(const std::string& statement) {
  return unable("language for statements: " + statement);
}
Outcome Session::commit() {
  return unable("transactions: it writes in one step");
}
Outcome Session::rollback() {
  return unable("transactions: it writes in one step");
}
void Session::lose_commit() {
  PAWL_ASSERT(false && "lose_commit() without the ability kLostCommit");
}
void Session::vanish() {
  PAWL_ASSERT(false && "vanish() without the ability kVanish");
}
Outcome Session::begin_prepared(Isolation, const std::string&) {
  return unable("prepared writes");
}
Outcome Session::prepare(const std::string&) {
  return unable("prepared writes");
}
Outcome Session::commit_prepared(const std::string&) {
  return unable("prepared writes");
}
Outcome Session::roll_back_prepared(const std::string&) {
  return unable("prepared writes");
}
Outcome Session::write(const Admission&, const std::string&) {
  return unable("one-step writes: it writes in transactions");
}
Outcome Session::write_to(const std::string&, const Admission&, const std::string&) {
  return unable("one-step writes elsewhere");
}
Outcome Session::move(const std::string&, const std::string&, const Admission&) {
  return unable("things that move from one resource to another");
}
Outcome Session::remove(const std::string&, std::uint64_t) {
  return unable("deletion of what is under guard");
}
Result<Decision> Session::write_held(const Lease&, const HeldWrite&) {
  PAWL_ASSERT(false && "write_held() without a front");
  return Error{Code::kInvalid, "this guard has no front"};
}

Error ScratchSpace::unable(std::string_view what) const {
  return {Code::kInvalid, name() + " " + std::string(what)};
}
Result<std::string> ScratchSpace::bare() {
  return unable("has no resources without a guard");
}
Result<void> ScratchSpace::set_policy(const std::string&, const Policy&) {
  return unable("has no modes and policies");
}
Result<void> ScratchSpace::emergency(const std::string&) {
  return unable("has no emergency switch");
}
Result<void> ScratchSpace::compact(const std::string&, std::uint64_t) {
  return unable("cannot be compacted");
}
Result<std::vector<std::string>> ScratchSpace::fresh_spellings(const Policy&) {
  return unable("has one spelling for each resource");
}
Result<void> ScratchSpace::rehearse_policy(const std::string&, const Policy&) {
  return unable("cannot rehearse");
}
Result<void> ScratchSpace::rehearse_compact(const std::string&, std::uint64_t) {
  return unable("cannot rehearse");
}
Result<void> ScratchSpace::make_unreachable(const std::string&) {
  return unable("cannot be made unreachable");
}
Result<std::optional<std::string>> ScratchSpace::enclose(const std::string&) {
  return unable("cannot become a part of anything");
}
Result<Counts> ScratchSpace::counts(const std::string&) {
  return unable("does not count its verdicts");
}

// --- Whole writes --------------------------------------------------------------------------------

namespace {

// The steps of a transaction up to the commit. Nothing is open any more when it has not passed.
Outcome begin_write_to(Session& session, Isolation isolation, const Admission& admission,
                       const std::vector<std::string>& resources, const std::string& value) {
  PAWL_ASSERT(!resources.empty());
  Outcome outcome = session.begin(isolation);
  Outcome verdict = outcome;
  if (outcome.passed()) verdict = outcome = session.admit(admission);
  for (const std::string& resource : resources) {
    if (!outcome.passed()) break;
    outcome = session.apply(resource, value);
  }
  if (outcome.passed()) return verdict;
  static_cast<void>(session.rollback());
  return outcome;
}

Outcome commit_write(Session& session, const Outcome& verdict) {
  if (!verdict.passed()) return verdict;
  const Outcome committed = session.commit();
  if (committed.passed()) return verdict;
  static_cast<void>(session.rollback());
  return committed;
}

}  // namespace

Outcome begin_write(Session& session, Isolation isolation, const Admission& admission,
                    const std::string& value) {
  return begin_write_to(session, isolation, admission, admission.resources, value);
}

Outcome write_elsewhere(Session& session, Abilities abilities, const std::string& resource,
                        const Admission& admission, const std::string& value) {
  if (!abilities.has(Ability::kTransactions)) return session.write_to(resource, admission, value);
  return commit_write(session,
                      begin_write_to(session, Isolation::kDefault, admission, {resource}, value));
}

Outcome write_whole(Session& session, Abilities abilities, Isolation isolation,
                    const Admission& admission, const std::string& value) {
  PAWL_ASSERT(!admission.resources.empty());
  if (!abilities.has(Ability::kTransactions)) return session.write(admission, value);
  return commit_write(session, begin_write(session, isolation, admission, value));
}

}  // namespace pawl::guard
