// check() for readers, and advance() for the holder that reads before it writes.
#include <fmt/format.h>

#include <array>

#include "conformance/cases.h"

namespace pawl::conformance {
namespace {

void expect_check(Trial& trial, const std::string& resource, std::uint64_t token, Answer answer) {
  const auto before = trial.fence(resource);
  const Checked checked = trial.session().check(resource, token);
  if (checked.outcome.answer != answer)
    fail("check of token " + std::to_string(token) + " was answered \"" +
         std::string(to_text(checked.outcome.answer)) + "\", expected \"" +
         std::string(to_text(answer)) + "\": " + checked.outcome.detail);
  if (checked.max != before) fail("check returned another fence than fence()");
  if (trial.fence(resource) != before)
    fail("check of token " + std::to_string(token) + " moved the fence");
}

void check_tells(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  expect_check(trial, resource, 34, Answer::kAdmitted);
  expect_check(trial, resource, 33, Answer::kStale);
  expect_check(trial, resource, 34, Answer::kAdmitted);
}

void check_moves_nothing(Trial& trial) {
  const std::string resource = trial.fresh();
  expect_check(trial, resource, 50, Answer::kAdmitted);
  trial.expect_fence(resource, {});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  expect_check(trial, resource, 50, Answer::kAdmitted);
  trial.expect(Answer::kAdmitted, write(resource, 34));
}

void check_says_ahead(Trial& trial) {
  const std::string resource = trial.fresh({.max_step = std::uint64_t{1} << 41});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  expect_check(trial, resource, 35 + (std::uint64_t{1} << 41), Answer::kAhead);
}

void check_in_shadow(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kShadow});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  expect_check(trial, resource, 33, Answer::kStale);
  if (!trial.session().check(resource, 33).outcome.let_through)
    fail("check in shadow said that the write would be refused");
}

// Hard case 54: the new holder has not written yet.
void advance_fences_out(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 33));
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 34));
}

void advance_first(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect(Answer::kStale, write(resource, 33));
}

void advance_again(Trial& trial) {
  const std::string resource = trial.fresh();
  for (int i = 0; i < 3; ++i) trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_advance(Answer::kDone, resource, 34);
}

void advance_back(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect_advance(Answer::kStale, resource, 33);
  trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 34));
}

void advance_ahead(Trial& trial) {
  const std::string resource = trial.fresh({.max_step = std::uint64_t{1} << 41});
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect_advance(Answer::kAhead, resource, 35 + (std::uint64_t{1} << 41));
  trial.expect(Answer::kAdmitted, write(resource, 34));
}

void advance_unguarded(Trial& trial) {
  using namespace std::chrono_literals;
  const std::string unguarded = "not_under_guard_" + trial.fresh();
  const Advanced advanced = trial.session().advance(unguarded, 34, 1s);
  if (advanced.outcome.answer != Answer::kUnguarded)
    fail(fmt::format("it was answered \"{}\", expected \"unguarded\": {}",
                     to_text(advanced.outcome.answer), advanced.outcome.detail));
}

// To say that it failed, and to fence the old holder out all the same, are both right.
void advance_unreached(Trial& trial) {
  using namespace std::chrono_literals;
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  need(trial.subject().make_unreachable(resource), "make_unreachable");
  const Advanced advanced = trial.session().advance(resource, 35, 1s);
  if (advanced.outcome.answer != Answer::kDone) return;
  Admission stale = write(resource, 34);
  for (const bool carried : {false, true}) {
    stale.carried = carried;
    if (trial.attempt(stale).passed())
      fail(fmt::format("the advance to 35 was answered as done, and {} passed{}", to_text(stale),
                       carried ? ", where the token was only carried" : ""));
  }
}

constexpr std::array kReaderCases{
    Case{"check-tells", "check tells a reader whether its token is stale", check_tells},
    Case{"check-moves-nothing", "check never moves the fence, however great the token",
         check_moves_nothing},
    Case{"check-ahead",
         "check says ahead of a token beyond max_step",
         check_says_ahead,
         {Ability::kMaxStep}},
    Case{"check-in-shadow",
         "check tells the verdict also where nothing is refused",
         check_in_shadow,
         {Ability::kModes}},
    Case{"advance-fences-out",
         "after an advance the old holder is stale, though the new one has not written",
         advance_fences_out},
    Case{"advance-first", "an advance is the first fence of a resource", advance_first},
    Case{"advance-again", "an advance may be repeated", advance_again},
    Case{"advance-back", "an advance to a smaller token is stale and lowers nothing", advance_back},
    Case{"advance-ahead",
         "an advance beyond max_step is refused",
         advance_ahead,
         {Ability::kMaxStep}},
    Case{"advance-unguarded",
         "an advance of what is not under guard is answered so",
         advance_unguarded,
         {Ability::kUnguarded}},
    Case{"advance-unreached",
         "an advance that did not reach the resource is not answered as done",
         advance_unreached,
         {Ability::kUnreachable}},
};

}  // namespace

std::span<const Case> reader_cases() {
  return kReaderCases;
}

}  // namespace pawl::conformance
