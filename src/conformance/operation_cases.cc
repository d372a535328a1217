// Operation numbers: an effect that is asked for twice and wanted once.
#include <array>

#include "conformance/cases.h"

namespace pawl::conformance {
namespace {

void repeated(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  for (int i = 0; i < 3; ++i) trial.expect(Answer::kReplayed, write(resource, 34, 1));
}

void told_apart(Trial& trial) {
  const std::string resource = trial.fresh();
  for (std::uint64_t operation = 1; operation <= 5; ++operation)
    trial.expect(Answer::kAdmitted, write(resource, 34, operation));
}

void in_any_order(Trial& trial) {
  const std::string resource = trial.fresh();
  for (const std::uint64_t operation : {8U, 3U, 7U}) {
    trial.expect(Answer::kAdmitted, write(resource, 34, operation));
    trial.expect(Answer::kReplayed, write(resource, 34, operation));
  }
  for (const std::uint64_t operation : {3U, 8U, 7U})
    trial.expect(Answer::kReplayed, write(resource, 34, operation));
  trial.expect(Answer::kAdmitted, write(resource, 34, 5));
}

// One number cannot distinguish done from never arrived.
void smaller(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34, 8));
  trial.expect(Answer::kStale, write(resource, 34, 7));
  trial.expect(Answer::kReplayed, write(resource, 34, 8));
  trial.expect(Answer::kAdmitted, write(resource, 34, 9));
}

void begin_anew(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  trial.expect(Answer::kAdmitted, write(resource, 35, 1));
  trial.expect(Answer::kReplayed, write(resource, 35, 1));
}

void of_an_old_token(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  trial.expect(Answer::kAdmitted, write(resource, 35, 1));
  trial.expect(Answer::kStale, write(resource, 34, 1));
  trial.expect(Answer::kStale, write(resource, 34, 2));
}

void after_advance(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect(Answer::kReplayed, write(resource, 34, 1));
}

void beside_unnumbered(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect(Answer::kReplayed, write(resource, 34, 1));
  trial.expect(Answer::kAdmitted, write(resource, 34, 2));
}

void per_resource(Trial& trial) {
  const auto resources = trial.fresh({}, 2);
  trial.expect(Answer::kAdmitted, write(resources[0], 34, 1));
  trial.expect(Answer::kAdmitted, write(resources[1], 34, 1));
  trial.expect(Answer::kReplayed, write(resources[0], 34, 1));
}

void rolled_back_operation(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const Outcome opened =
      begin_write(trial.session(), Isolation::kDefault, write(resource, 34, 1), trial.next_value());
  if (!opened.passed()) fail("operation 1 was not admitted: " + opened.detail);
  static_cast<void>(trial.session().rollback());
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  trial.expect(Answer::kReplayed, write(resource, 34, 1));
}

void once_needs_one(Trial& trial) {
  const std::string resource = trial.fresh({.equal = Equal::kOnce});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_refused({Answer::kStale, Answer::kMissing, Answer::kMalformed}, write(resource, 34));
  trial.expect(Answer::kAdmitted, write(resource, 34, 1));
  trial.expect(Answer::kReplayed, write(resource, 34, 1));
  trial.expect(Answer::kAdmitted, write(resource, 35));
}

constexpr Abilities kAny{Ability::kOperationSet, Ability::kOperationLast};

constexpr std::array kOperationCases{
    Case{"operation-repeated",
         "an operation that is repeated under its token is replayed and takes effect once",
         repeated,
         {},
         kAny},
    Case{"operations-told-apart",
         "growing operations of one token each take effect",
         told_apart,
         {},
         kAny},
    Case{"operations-in-any-order",
         "operations of one token are admitted in any order, each once",
         in_any_order,
         {Ability::kOperationSet}},
    Case{"smaller-operation",
         "where one number is remembered, a smaller operation is stale",
         smaller,
         {Ability::kOperationLast}},
    Case{"operations-begin-anew", "a new token has operations of its own", begin_anew, {}, kAny},
    Case{"operation-of-an-old-token",
         "an operation under an old token is stale, done or not",
         of_an_old_token,
         {},
         kAny},
    Case{"operation-after-advance",
         "an advance to the same token forgets no operation",
         after_advance,
         {},
         kAny},
    Case{"operation-beside-unnumbered",
         "writes without an operation forget none",
         beside_unnumbered,
         {},
         kAny},
    Case{"operations-per-resource",
         "each resource has operations of its own",
         per_resource,
         {},
         kAny},
    Case{"operation-rolled-back",
         "an operation that was rolled back was not done",
         rolled_back_operation,
         {Ability::kTransactions},
         kAny},
    Case{"once-needs-an-operation",
         "under `equal: once` an equal token needs an operation",
         once_needs_one,
         {Ability::kEqualOnce},
         kAny},
};

}  // namespace

std::span<const Case> operation_cases() {
  return kOperationCases;
}

}  // namespace pawl::conformance
