#include "guard/etcd/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pawl::guard {
namespace {

EtcdPolicy enforcing() {
  return {.contract = "1", .mode = GuardMode::kEnforce};
}

TEST(EtcdRules, SmallerTokenIsStaleAndAnEqualOneIsNot) {
  EXPECT_EQ(judge_write(enforcing(), {33, {}}, {34, 0}).verdict, Verdict::kStale);
  EXPECT_EQ(judge_write(enforcing(), {34, {}}, {34, 0}).verdict, Verdict::kAdmitted);
  EXPECT_EQ(judge_write(enforcing(), {34, {}}, {34, 0}).store, std::nullopt);
  EXPECT_EQ(judge_write(enforcing(), {35, {}}, {34, 8}).store, (EtcdFence{35, 0}));
}

TEST(EtcdRules, OperationIsAdmittedOnceAndNeverBackwards) {
  EXPECT_EQ(judge_write(enforcing(), {34, 8}, {34, 8}).verdict, Verdict::kReplayed);
  EXPECT_EQ(judge_write(enforcing(), {34, 7}, {34, 8}).verdict, Verdict::kStale);
  EXPECT_EQ(judge_write(enforcing(), {34, 9}, {34, 8}).store, (EtcdFence{34, 9}));
  EXPECT_EQ(judge_write(enforcing(), {34, 1}, {34, {}}).store, (EtcdFence{34, 1}));
}

// What etcd compares without a read must be exactly what would have been judged after one.
TEST(EtcdRules, RangeOfAdmissionHoldsNothingThatWouldBeRefused) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  int ranges = 0, inside = 0;
  for (int i = 0; i < 200'000; ++i) {
    EtcdPolicy policy = enforcing();
    policy.floor = below(6);
    policy.max_step = 1 + below(6);
    policy.equal = static_cast<EtcdEqual>(below(3));
    EtcdClaim claim{1 + below(10), {}};
    if (below(2) == 0) claim.operation = 1 + below(4);
    EtcdFence fence{below(12), {}};
    if (fence.token > 0 && below(2) == 0) fence.operation = below(5);
    std::optional<std::uint64_t> known;
    if (below(2) == 0) known = below(12);
    const auto range = range_of_admission(policy, claim, known);
    if (!range) continue;
    ++ranges;
    const std::string text = to_text(fence);
    if (!(range->after < text && text < range->before)) continue;
    ++inside;
    const EtcdJudgement judged = judge_write(policy, claim, fence);
    ASSERT_EQ(judged.verdict, Verdict::kAdmitted)
        << "token " << *claim.token << " fence " << text << " floor " << policy.floor;
    ASSERT_EQ(judged.store, range->store) << "token " << *claim.token << " fence " << text;
  }
  EXPECT_GT(inside, 10'000);
  EXPECT_GT(ranges, inside);
}

TEST(EtcdRules, RangeOfAdvanceHoldsNothingThatWouldBeRefused) {
  std::mt19937 random(8);
  int inside = 0;
  for (int i = 0; i < 50'000; ++i) {
    EtcdPolicy policy = enforcing();
    policy.floor = random() % 6;
    policy.max_step = 1 + random() % 6;
    const std::uint64_t token = 1 + random() % 10;
    const EtcdFence fence{random() % 12, {}};
    const auto range = range_of_advance(policy, token);
    const std::string text = to_text(fence);
    if (!range || !(range->after < text && text < range->before)) continue;
    ++inside;
    const EtcdJudgement judged = judge_token(policy, token, fence);
    ASSERT_EQ(judged.verdict, Verdict::kAdmitted);
    ASSERT_EQ(judged.store, range->store);
  }
  EXPECT_GT(inside, 1'000);
}

// The hash is part of the format: writers in other languages have it too.
TEST(EtcdRules, CanaryChoosesByTheHashOfTheName) {
  EtcdPolicy policy{.contract = "1", .mode = GuardMode::kCanary, .percent = 50};
  const auto chosen = [&](std::string_view name) { return enforces(policy, name); };
  EXPECT_EQ(chosen(""), 2166136261u % 100 < 50);
  EXPECT_EQ(chosen("a"), 0xe40c292cu % 100 < 50);
  int count = 0;
  for (int i = 0; i < 1000; ++i) count += chosen("orders:" + std::to_string(i)) ? 1 : 0;
  EXPECT_GT(count, 400);
  EXPECT_LT(count, 600);
}

}  // namespace
}  // namespace pawl::guard
