#include "guard/sqlite/rules.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace pawl::sqlite {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{1} << 44;

TEST(Rules, ASmallerTokenIsStaleAnEqualOneIsAdmitted) {
  EXPECT_EQ(judge(33, 34, kStep), Verdict::kStale);
  EXPECT_EQ(judge(34, 34, kStep), Verdict::kAdmitted);
  EXPECT_EQ(judge({}, 34, kStep), Verdict::kMissing);
}

TEST(Rules, TheFirstTokenMayBeAnyAndTheNextAtMostAStepAhead) {
  EXPECT_EQ(judge(limits::kTokenMax, 0, kStep), Verdict::kAdmitted);
  EXPECT_EQ(judge(1 + kStep, 1, kStep), Verdict::kAdmitted);
  EXPECT_EQ(judge(2 + kStep, 1, kStep), Verdict::kAhead);
}

TEST(Rules, CanaryTakesMoreOfTheSameResourcesAsItGrows) {
  int chosen = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string resource = "accounts:" + std::to_string(i);
    if (!enforces(GuardMode::kCanary, 30, resource)) continue;
    ++chosen;
    EXPECT_TRUE(enforces(GuardMode::kCanary, 60, resource));
  }
  EXPECT_NEAR(chosen, 300, 60);
  EXPECT_TRUE(enforces(GuardMode::kCanary, 100, "orders"));
}

TEST(Rules, OnlyRequireTokenMakesAWriteWithoutATokenRefusable) {
  EXPECT_FALSE(refusable(Verdict::kMissing, false, false));
  EXPECT_TRUE(refusable(Verdict::kMissing, false, true));
  EXPECT_TRUE(
      refusable(Verdict::kMissing, true, false));  // `equal: once`, without an operation number
  EXPECT_TRUE(refusable(Verdict::kStale, true, false));
}

}  // namespace
}  // namespace pawl::sqlite
