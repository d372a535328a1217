// A drill that shuts out a live holder is an outage: every case must be refused or confirmed.
#include "cli/drill_fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

FenceFacts on_invoices(std::optional<std::uint64_t> fence) {
  return {.resource = "invoices", .lock = "invoices", .fence = fence, .live = {}, .past = {}};
}

TEST(DrillFence, RefusesWhenTheFenceTokenHoldsAnotherLock) {
  FenceFacts facts = on_invoices(106);
  facts.live = {{106, {"billing/nightly"}}};
  const FenceFinding finding = judge(facts);
  EXPECT_EQ(finding.use, FenceUse::kWrongLock);
  EXPECT_THAT(finding.detail, AllOf(HasSubstr("token 106 holds billing/nightly now"),
                                    HasSubstr("use --lock billing/nightly")));
}

TEST(DrillFence, RefusesWhenTheLastWritersLockHasANewHolder) {
  FenceFacts facts = on_invoices(99);
  facts.live = {{104, {"unrelated"}}, {106, {"billing/nightly"}}};
  facts.other_lock = "billing/nightly";
  const FenceFinding finding = judge(facts);
  EXPECT_EQ(finding.use, FenceUse::kWrongLock);
  EXPECT_THAT(finding.detail, AllOf(HasSubstr("token 106"), HasSubstr("token 99"),
                                    HasSubstr("--lock billing/nightly")));
}

TEST(DrillFence, ProvenByALiveOrPastHolderOfTheLock) {
  FenceFacts facts = on_invoices(106);
  facts.lock = "billing/nightly";
  facts.live = {{106, {"billing/nightly"}}, {107, {"unrelated"}}};
  EXPECT_EQ(judge(facts).use, FenceUse::kProven);
  facts.live = {{107, {"unrelated"}}};
  facts.past = {{106, {"billing/nightly"}}};
  EXPECT_EQ(judge(facts).use, FenceUse::kProven);
}

TEST(DrillFence, ProvenByALeaseOnSeveralLocks) {
  FenceFacts facts = on_invoices(106);
  facts.lock = "billing/nightly";
  facts.live = {{106, {"a", "billing/nightly"}}};
  EXPECT_EQ(judge(facts).use, FenceUse::kProven);
}

TEST(DrillFence, UnusedResourceWithoutOtherHoldersIsFine) {
  EXPECT_EQ(judge(on_invoices(std::nullopt)).use, FenceUse::kNoOthers);
}

TEST(DrillFence, UnusedResourceWithOtherHoldersIsUnproven) {
  FenceFacts facts = on_invoices(std::nullopt);
  facts.live = {{106, {"billing/nightly"}}};
  const FenceFinding finding = judge(facts);
  EXPECT_EQ(finding.use, FenceUse::kUnproven);
  EXPECT_THAT(finding.detail, HasSubstr("billing/nightly (token 106)"));
}

TEST(DrillFence, UnknownFenceTokenIsUnproven) {
  const FenceFinding finding = judge(on_invoices(99));
  EXPECT_EQ(finding.use, FenceUse::kUnproven);
  EXPECT_THAT(finding.detail,
              AllOf(HasSubstr("does not know token 99"), Not(HasSubstr("held now"))));
}

TEST(DrillFence, EarlierDrillProvesNothing) {
  FenceFacts facts = on_invoices(110);
  facts.past = {{110, {"invoices"}, true}, {109, {"invoices"}, true}};
  EXPECT_EQ(judge(facts).use, FenceUse::kNoOthers) << "a second drill on a quiet pawld";
  facts.live = {{112, {"billing/nightly"}}};
  EXPECT_EQ(judge(facts).use, FenceUse::kUnproven);
  facts.past.push_back({99, {"invoices"}});
  EXPECT_EQ(judge(facts).use, FenceUse::kProven) << "others than drills use this lock";
}

TEST(DrillFence, WorkersOfOtherDrillsDoNotCount) {
  FenceFacts facts = on_invoices(std::nullopt);
  facts.live = {{106, {"pawl-drill/12345678"}, true}};
  EXPECT_EQ(judge(facts).use, FenceUse::kNoOthers);
}

TEST(DrillFence, UserWithoutAllLocksCannotRuleOutOthers) {
  FenceFacts facts = on_invoices(std::nullopt);
  facts.sees_all = false;
  EXPECT_EQ(judge(facts).use, FenceUse::kUnproven);
}

TEST(DrillFence, ListsThreeHoldersAndCountsTheOthers) {
  FenceFacts facts = on_invoices(std::nullopt);
  for (std::uint64_t token = 1; token <= 10; ++token) facts.live.push_back({token, {"other"}});
  EXPECT_THAT(judge(facts).detail, HasSubstr("other (token 3) and 7 more."));
}

}  // namespace
}  // namespace pawl::cli
