// More than one resource, and resources that come and go.
#include <array>

#include "conformance/cases.h"

namespace pawl::conformance {
namespace {

void apart(Trial& trial) {
  const auto resources = trial.fresh({}, 3);
  trial.expect(Answer::kAdmitted, write(resources[0], 50));
  trial.expect(Answer::kAdmitted, write(resources[1], 20));
  trial.expect_fence(resources[2], {});
  trial.expect(Answer::kStale, write(resources[0], 20));
  trial.expect(Answer::kAdmitted, write(resources[2], 10));
}

void together(Trial& trial) {
  const auto resources = trial.fresh({}, 3);
  trial.expect(Answer::kAdmitted, write(resources, 34));
  trial.expect(Answer::kAdmitted, write({resources[2], resources[0]}, 35));
  trial.expect(Answer::kStale, write(resources[0], 34));
  trial.expect(Answer::kAdmitted, write(resources[1], 34));
}

// The stale one first, in the middle and last: whatever order a guard takes them in, the others
// stay as they were.
void all_or_none(Trial& trial) {
  for (std::size_t newer = 0; newer < 3; ++newer) {
    const auto resources = trial.fresh({}, 3);
    for (const std::string& resource : resources)
      trial.expect(Answer::kAdmitted, write(resource, 10));
    trial.expect(Answer::kAdmitted, write(resources[newer], 50));
    trial.expect(Answer::kStale, write(resources, 30));
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != newer) trial.expect(Answer::kAdmitted, write(resources[i], 10));
    }
  }
}

void removed(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  if (const Outcome outcome = trial.session().remove(resource, 35); !outcome.passed())
    fail("the holder of 35 could not delete it: " + outcome.detail);
  trial.expect_fence(resource, 35);
  trial.expect(Answer::kStale, write(resource, 34));
  trial.expect(Answer::kAdmitted, write(resource, 35));
  trial.expect(Answer::kStale, write(resource, 34));
}

void removed_by_stale(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const auto before = trial.effects(resource);
  if (const Outcome outcome = trial.session().remove(resource, 33);
      outcome.answer != Answer::kStale)
    fail("a delete with token 33 after 34 was answered \"" + std::string(to_text(outcome.answer)) +
         "\", expected \"stale\": " + outcome.detail);
  if (trial.effects(resource) != before) fail("a stale delete changed the log");
  trial.expect_fence(resource, 34);
}

void compacted(Trial& trial) {
  const auto resources = trial.fresh({}, 2);
  trial.expect(Answer::kAdmitted, write(resources[0], 30));
  trial.expect(Answer::kAdmitted, write(resources[1], 50));
  need(trial.subject().compact(resources[0], 40), "compact");
  // Whether 30 itself was forgotten or not: nothing below the floor may write again.
  if (trial.attempt(write(resources[0], 29)).passed())
    fail("token 29 passed after compact below 40");
  if (trial.attempt(write(resources[1], 49)).passed()) fail("compact below 40 forgot the fence 50");
  trial.expect(Answer::kAdmitted, write(resources[0], 41));
  trial.expect(Answer::kAdmitted, write(resources[1], 50));
}

constexpr std::array kResourceCases{
    Case{"resources-apart", "resources do not share a fence", apart},
    Case{"resources-together",
         "a write to several resources raises the fence of each",
         together,
         {Ability::kSeveral}},
    Case{"all-or-none",
         "a write that is stale for one of its resources moves nothing at any of them",
         all_or_none,
         {Ability::kSeveral}},
    Case{"delete-and-recreate",
         "deleting and recreating does not forget the fence",
         removed,
         {Ability::kRemove}},
    Case{"stale-delete", "a stale token cannot delete", removed_by_stale, {Ability::kRemove}},
    Case{"compact",
         "compacting forgets nothing that a live token needs",
         compacted,
         {Ability::kCompact}},
};

}  // namespace

std::span<const Case> resource_cases() {
  return kResourceCases;
}

}  // namespace pawl::conformance
