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
};

}  // namespace

std::span<const Case> crash_cases() {
  return kCrashCases;
}

}  // namespace pawl::conformance
