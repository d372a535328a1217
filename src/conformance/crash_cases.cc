// Writes that are taken back, cut off, or whose answer never came.
#include <fmt/format.h>

#include <array>

#include "conformance/cases.h"

namespace pawl::conformance {
namespace {

using namespace std::chrono_literals;

void open_with(Session& session, const Admission& admission, const std::string& value) {
  Outcome outcome{Answer::kAgain, false, {}};
  for (int i = 0; i < 50 && outcome.answer == Answer::kAgain; ++i)
    outcome = begin_write(session, Isolation::kDefault, admission, value);
  if (!outcome.passed())
    fail(fmt::format("{} was answered \"{}\": {}", to_text(admission), to_text(outcome.answer),
                     outcome.detail));
}

// Whether a roll-back takes the fence back as well is the guard's own choice: both are safe. It
// must only never be lower than what was committed.
void rolled_back(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  open_with(trial.session(), write(resource, 35), trial.next_value());
  if (const Outcome outcome = trial.session().rollback(); !outcome.passed())
    fail("rollback: " + outcome.detail);
  if (trial.effects(resource).size() != 1) fail("a write that was rolled back took effect");
  if (const auto fence = trial.fence(resource); fence != 34 && fence != 35)
    fail(fmt::format("after 34 was committed and 35 rolled back the fence is {}",
                     fence.value_or(0)));
  trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 35));
}

void vanished(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 33));
  auto gone = trial.open();
  open_with(*gone, write(resource, 33), trial.next_value());
  gone->vanish();
  gone.reset();
  trial.expect_advance(Answer::kDone, resource, 34);
  if (trial.effects(resource).size() != 1)
    fail("a write that was cut off before its commit took effect");
  trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 34));
}

void vanished_operation(Trial& trial) {
  const std::string resource = trial.fresh();
  auto gone = trial.open();
  const std::string value = trial.next_value();
  open_with(*gone, write(resource, 34, 1), value);
  gone->vanish();
  gone.reset();
  if (const Outcome again = trial.attempt(write(resource, 34, 1), value);
      again.answer != Answer::kAdmitted)
    fail(
        fmt::format("an operation that was cut off before its commit was answered \"{}\" when it "
                    "was sent again: {}",
                    to_text(again.answer), again.detail));
  if (trial.effects(resource) != std::vector<Effect>{{34, value}})
    fail("it did not take effect exactly once");
}

// The retry may come before, while, or after the server works on the commit.
void unknown_commit(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_advance(Answer::kDone, resource, 34);
  for (std::uint64_t operation = 1; operation <= 10; ++operation) {
    auto gone = trial.open();
    const std::string value = fmt::format("operation {}", operation);
    open_with(*gone, write(resource, 34, operation), value);
    gone->lose_commit();
    gone.reset();
    const Outcome again = trial.attempt(write(resource, 34, operation), value);
    if (again.answer != Answer::kAdmitted && again.answer != Answer::kReplayed)
      fail(fmt::format("the retry of an unknown commit was answered \"{}\": {}",
                       to_text(again.answer), again.detail));
    const auto effects = trial.effects(resource);
    if (effects.size() != operation || effects.back().value != value)
      fail(fmt::format(
          "after {} operations, each sent again after an unknown commit, {} took effect", operation,
          effects.size()));
  }
}

// Without an operation number the outcome stays unknown; a newer holder is safe all the same.
void unknown_commit_then_fenced(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 33));
  auto gone = trial.open();
  open_with(*gone, write(resource, 33), trial.next_value());
  gone->lose_commit();
  gone.reset();
  trial.expect_advance(Answer::kDone, resource, 34);
  const std::size_t settled = trial.effects(resource).size();
  if (settled > 2) fail("one write took effect more than once");
  trial.expect(Answer::kStale, write(resource, 33));
  if (trial.effects(resource).size() != settled)
    fail("an old commit took effect after the advance was answered");
}

void prepare_write(Session& session, Isolation isolation, const Admission& admission,
                   const std::string& name) {
  Outcome outcome = session.begin_prepared(isolation, name);
  if (outcome.passed()) outcome = session.admit(admission);
  if (outcome.passed()) outcome = session.apply(admission.resources.front(), name);
  if (outcome.passed()) outcome = session.prepare(name);
  if (!outcome.passed())
    fail(fmt::format("{} could not be prepared: \"{}\" {}", to_text(admission),
                     to_text(outcome.answer), outcome.detail));
}

// Names of prepared writes are often shared by all that a server has.
std::string prepared_name(Trial& trial, const std::string& resource) {
  return fmt::format("{} {}", resource, trial.next_value());
}

// A resource that gives up the prepared write instead is safe, too.
void advance_against_prepared(Trial& trial, Isolation isolation, bool session_ends) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 33));
  auto old_holder = trial.open();
  const std::string name = prepared_name(trial, resource);
  prepare_write(*old_holder, isolation, write(resource, 33), name);
  if (session_ends) old_holder.reset();
  const Advanced first = trial.session().advance(resource, 34, 200ms);
  Session& coordinator = session_ends ? trial.session() : *old_holder;
  const Outcome committed = coordinator.commit_prepared(name);
  if (first.outcome.answer == Answer::kDone && committed.passed())
    fail(
        fmt::format("at isolation {}: the advance to 34 was answered while a write with 33 was "
                    "prepared, and that write was committed afterwards",
                    to_text(isolation)));
  if (first.outcome.answer != Answer::kDone && first.outcome.answer != Answer::kBusy)
    fail(fmt::format("the advance to 34 was answered \"{}\": {}", to_text(first.outcome.answer),
                     first.outcome.detail));
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect(Answer::kStale, write(resource, 33));
}

void prepared_write(Trial& trial) {
  for (const Isolation isolation : isolation_levels(trial))
    advance_against_prepared(trial, isolation, false);
  advance_against_prepared(trial, Isolation::kDefault, true);
}

void prepared_outlives(Trial& trial) {
  const std::string resource = trial.fresh();
  std::vector<Effect> wanted;
  for (const bool commits : {true, false, true}) {
    auto session = trial.open();
    const std::string name = prepared_name(trial, resource);
    prepare_write(*session, Isolation::kDefault, write(resource, 34), name);
    session.reset();
    if (trial.effects(resource) != wanted) fail("a write took effect when it was prepared");
    const Outcome ended =
        commits ? trial.session().commit_prepared(name) : trial.session().roll_back_prepared(name);
    if (!ended.passed())
      fail(fmt::format("another session could not {} it: \"{}\" {}",
                       commits ? "commit" : "roll back", to_text(ended.answer), ended.detail));
    if (commits) wanted.push_back({34, name});
    if (trial.effects(resource) != wanted) fail("it was not ended as the coordinator decided");
  }
  trial.expect_advance(Answer::kDone, resource, 35);
}

constexpr Abilities kOperationAbilities{Ability::kOperationSet, Ability::kOperationLast};

constexpr std::array kCrashCases{
    Case{"rolled-back",
         "a write that was rolled back has no effect and lowers no fence",
         rolled_back,
         {Ability::kTransactions}},
    Case{"vanished",
         "a writer that vanishes leaves no effect and does not stop the next holder",
         vanished,
         {Ability::kTransactions, Ability::kVanish}},
    Case{"vanished-operation",
         "an operation that was cut off before its commit can be sent again",
         vanished_operation,
         {Ability::kTransactions, Ability::kVanish},
         kOperationAbilities},
    Case{"unknown-commit",
         "an operation sent again after an unknown commit takes effect exactly once",
         unknown_commit,
         {Ability::kTransactions, Ability::kLostCommit},
         kOperationAbilities},
    Case{"unknown-commit-fenced",
         "an unknown commit is settled before an advance is answered",
         unknown_commit_then_fenced,
         {Ability::kTransactions, Ability::kLostCommit}},
    Case{"prepared-write",
         "an advance is answered only when no older prepared write can still be committed",
         prepared_write,
         {Ability::kTransactions, Ability::kPrepared}},
    Case{"prepared-outlives",
         "a prepared write outlives its session, and another session commits it or takes it back",
         prepared_outlives,
         {Ability::kTransactions, Ability::kPrepared}},
};

}  // namespace

std::span<const Case> crash_cases() {
  return kCrashCases;
}

}  // namespace pawl::conformance
