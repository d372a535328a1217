#include "guard/dynamodb/rules.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(DynamoRules, TokensAreComparedWithTheFence) {
  const DynamoPolicy policy;
  EXPECT_EQ(judge_dynamo_write(policy, {33, {}}, {34, 0}).verdict, Verdict::kStale);
  EXPECT_EQ(judge_dynamo_write(policy, {34, {}}, {34, 0}).verdict, Verdict::kAdmitted);
  EXPECT_EQ(judge_dynamo_write(policy, {35, {}}, {34, 0}).verdict, Verdict::kAdmitted);
  EXPECT_EQ(judge_dynamo_write(policy, {{}, {}}, {34, 0}).verdict, Verdict::kMissing);
  EXPECT_EQ(judge_dynamo_write(policy, {34 + policy.max_step + 1, {}}, {34, 0}).verdict,
            Verdict::kAhead);
}

TEST(DynamoRules, OperationsGrow) {
  const DynamoPolicy policy;
  EXPECT_EQ(judge_dynamo_write(policy, {34, 7}, {34, 7}).verdict, Verdict::kReplayed);
  EXPECT_EQ(judge_dynamo_write(policy, {34, 6}, {34, 7}).verdict, Verdict::kStale);
  EXPECT_EQ(judge_dynamo_write(policy, {34, 8}, {34, 7}).verdict, Verdict::kAdmitted);
  EXPECT_EQ(judge_dynamo_write(policy, {35, 1}, {34, 7}).verdict, Verdict::kAdmitted);
}

// The condition in DynamoDB says the same as the judgement here: what a test holds for is admitted.
TEST(DynamoRules, TestHoldsOnlyWhereTheClaimIsAdmitted) {
  DynamoPolicy policies[3];
  policies[1].floor = 30;
  policies[2].equal = Equal::kOnce;
  const std::vector<DynamoFence> fences{
      {0, {}}, {20, 0}, {33, {}}, {33, 4},  {34, {}},
      {34, 0}, {34, 4}, {34, 5},  {35, {}}, {std::uint64_t{1} << 50, 0}};
  for (const DynamoPolicy& policy : policies) {
    for (const std::uint64_t token :
         {std::uint64_t{1}, std::uint64_t{34}, (std::uint64_t{1} << 50) + 1}) {
      for (const auto operation :
           {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{5}}) {
        for (const DynamoFence& known : fences) {
          const auto admission = find_admission(policy, {token, operation}, known);
          if (!admission) continue;
          for (const DynamoFence& fence : fences) {
            if (!holds(admission->test, fence)) continue;
            const auto judged = judge_dynamo_write(policy, {token, operation}, fence);
            EXPECT_EQ(judged.verdict, Verdict::kAdmitted) << token << " " << fence.token;
            EXPECT_GE(admission->store.token, fence.token);
          }
        }
      }
    }
  }
}

TEST(DynamoRules, HolderThatWritesAgainKeepsTheOperationNumber) {
  const auto admission = find_admission({}, {34, {}}, DynamoFence{34, 5});
  ASSERT_TRUE(admission && admission->test.exact);
  EXPECT_EQ(admission->store.operation, 5u);
}

TEST(DynamoRules, TokenBelowTheFloorIsNeverAdmitted) {
  DynamoPolicy policy;
  policy.floor = 50;
  EXPECT_FALSE(find_admission(policy, {49, {}}, {}));
  EXPECT_FALSE(find_advance(policy, 49));
}

}  // namespace
}  // namespace pawl::guard
