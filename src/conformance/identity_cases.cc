// Which resource a write reaches: one that has two names, one that moves, one that is a part of
// another, and one that the token was not admitted for.
#include <fmt/format.h>

#include <array>

#include "conformance/cases.h"

namespace pawl::conformance {
namespace {

// Tokens are required where they can be, so that a write which nothing has admitted is refused.
Policy strict(const Trial& trial) {
  return {.require_token = trial.has(Ability::kRequireToken)};
}

void expect_unchanged(Trial& trial, const std::string& resource, const Trial::Picture& before,
                      std::string_view by) {
  if (trial.picture(resource) != before)
    fail(fmt::format("{} changed the log or the fence of {}", by, resource));
}

// A guard may know only one of the spellings, if it refuses the other by name.
constexpr std::array kUnknownSpelling{Answer::kMalformed, Answer::kUnguarded};

bool knows(Trial& trial, const std::string& name) {
  const Answer answer = trial.session().check(name, 50).outcome.answer;
  return answer != kUnknownSpelling[0] && answer != kUnknownSpelling[1];
}

void delete_by_one_spelling(Trial& trial) {
  const auto names = trial.fresh_spellings({});
  trial.expect(Answer::kAdmitted, write(names[0], 34));
  if (const Outcome outcome = trial.session().remove(names[0], 40); !outcome.passed())
    fail("the holder of 40 could not delete it: " + outcome.detail);
  trial.expect_refused({Answer::kStale, Answer::kMalformed, Answer::kUnguarded},
                       write(names[1], 39));
  if (!trial.effects(names[0]).empty())
    fail("what was deleted by one name came back by the other, with an older token");
}

void equal_keys(Trial& trial) {
  const auto names = trial.fresh_spellings({});
  trial.expect(Answer::kAdmitted, write(names[0], 34));
  trial.expect_advance(Answer::kDone, names[0], 40);
  const auto before = trial.picture(names[0]);
  trial.expect_refused({Answer::kStale, Answer::kMalformed, Answer::kUnguarded},
                       write(names[1], 39));
  expect_unchanged(trial, names[0], before, "a stale write by another spelling");
  if (knows(trial, names[1])) {
    trial.expect(Answer::kAdmitted, write(names[1], 41));
    trial.expect_fence(names[0], 41);
    trial.expect(Answer::kStale, write(names[0], 40));
  }
  if (trial.has(Ability::kRemove)) delete_by_one_spelling(trial);
}

// The mover's token is good for one of the two, and the other has seen a newer holder.
void expect_no_move(Trial& trial, const std::string& from, const std::string& to,
                    const Admission& admission) {
  const auto before_from = trial.picture(from);
  const auto before_to = trial.picture(to);
  const Outcome outcome = trial.attempt_move(from, to, admission);
  if (outcome.passed() || (outcome.answer != Answer::kStale && outcome.answer != Answer::kMissing))
    fail(fmt::format("a move from {} to {} by {} was answered \"{}\", expected \"stale\": {}", from,
                     to, to_text(admission), to_text(outcome.answer), outcome.detail));
  expect_unchanged(trial, from, before_from, "a move that was refused");
  expect_unchanged(trial, to, before_to, "a move that was refused");
}

void move_into_newer(Trial& trial) {
  const auto resources = trial.fresh(strict(trial), 2);
  trial.expect(Answer::kAdmitted, write(resources[0], 33));
  trial.expect_advance(Answer::kDone, resources[1], 40);
  expect_no_move(trial, resources[0], resources[1], write(resources[0], 33));
}

void move_out_of_newer(Trial& trial) {
  const auto resources = trial.fresh(strict(trial), 2);
  trial.expect(Answer::kAdmitted, write(resources[0], 40));
  trial.expect_advance(Answer::kDone, resources[1], 33);
  expect_no_move(trial, resources[0], resources[1], write(resources[1], 33));
}

void moved(Trial& trial) {
  const auto resources = trial.fresh(strict(trial), 2);
  trial.expect(Answer::kAdmitted, write(resources[0], 34));
  const auto carried = trial.effects(resources[0]);
  if (const Outcome outcome = trial.attempt_move(resources[0], resources[1], write(resources, 35));
      !outcome.passed())
    fail(fmt::format("the holder of 35 could not move it: \"{}\" {}", to_text(outcome.answer),
                     outcome.detail));
  if (!trial.effects(resources[0]).empty() || trial.effects(resources[1]) != carried)
    fail("a move that was answered as done did not happen");
  for (const std::string& resource : resources) {
    trial.expect_fence(resource, 35);
    trial.expect(Answer::kStale, write(resource, 34));
  }
}

// Once where the token is smaller than the other's fence, and once where it is greater: it is not
// the other's token in either case.
void another_key(Trial& trial) {
  const auto resources = trial.fresh(strict(trial), 3);
  trial.expect(Answer::kAdmitted, write(resources[0], 34));
  trial.expect(Answer::kAdmitted, write(resources[1], 40));
  trial.expect(Answer::kAdmitted, write(resources[2], 20));
  for (const std::string& other : {resources[1], resources[2]}) {
    const auto before = trial.picture(other);
    const Outcome outcome = trial.attempt_elsewhere(other, write(resources[0], 34));
    if (outcome.passed())
      fail(fmt::format("token 34, admitted for {}, wrote to {}, whose fence is {}", resources[0],
                       other, before.fence.value_or(0)));
    expect_unchanged(trial, other, before, "a write with the token of another resource");
  }
  trial.expect(Answer::kAdmitted, write(resources[0], 34));
}

void expect_refused_through(Trial& trial, const std::string& larger, const std::string& resource,
                            const Admission& admission) {
  const auto before = trial.picture(resource);
  const Outcome outcome = trial.attempt_elsewhere(larger, admission);
  if (outcome.passed())
    fail(fmt::format("{} passed through {}, of which it has become a part", to_text(admission),
                     larger));
  expect_unchanged(trial, resource, before, "a write that was refused");
}

void became_a_part(Trial& trial) {
  const std::string resource = trial.fresh(strict(trial));
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const auto larger = need(trial.subject().enclose(resource), "enclose");
  trial.expect(Answer::kStale, write(resource, 33));
  if (!larger) return;  // The guard does not let it happen.
  trial.end_session();
  expect_refused_through(trial, *larger, resource, write_without_token(*larger));
  Admission stale = write(resource, 33);
  expect_refused_through(trial, *larger, resource, stale);
  stale.carried = true;
  expect_refused_through(trial, *larger, resource, stale);
  if (const Outcome outcome = trial.attempt_elsewhere(*larger, write(resource, 34));
      !outcome.passed())
    fail(fmt::format("the holder of 34 could not write through {}: \"{}\" {}", *larger,
                     to_text(outcome.answer), outcome.detail));
}

constexpr std::array kIdentityCases{
    Case{"equal-keys",
         "two spellings of one name are one resource, with one fence",
         equal_keys,
         {Ability::kSpellings}},
    Case{"move-into-newer",
         "a token that is not good at the destination moves nothing there",
         move_into_newer,
         {Ability::kMoves}},
    Case{"move-out-of-newer",
         "a token that is not good at the source moves nothing away",
         move_out_of_newer,
         {Ability::kMoves}},
    Case{"moved",
         "a move raises the fence where it starts and where it ends, and takes none along",
         moved,
         {Ability::kMoves, Ability::kSeveral}},
    Case{"another-key",
         "a token that was admitted for one resource does not write to another",
         another_key,
         {Ability::kElsewhere}},
    Case{"became-a-part",
         "what becomes a part of something larger is judged also when it is written through that",
         became_a_part,
         {Ability::kElsewhere, Ability::kEnclosed, Ability::kTokenless, Ability::kRequireToken}},
};

}  // namespace

std::span<const Case> identity_cases() {
  return kIdentityCases;
}

}  // namespace pawl::conformance
