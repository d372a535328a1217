#include "guard/sqlite/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "guard/sqlite/statement.h"

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

TEST(Rules, KeysThatNocaseCallsEqualHaveOneForm) {
  using namespace std::string_literals;
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  const std::vector<std::string> keys{
      "Alice",  "aLICE", "alice ", "\xC3\x89t\xC3\xA9", "\xC3\xA9t\xC3\xA9", "a\0x"s, "A\0y"s,
      "a\0xx"s, "a\xFF", "A\xFF"};
  for (const std::string_view collation : {"NOCASE", "RTRIM"}) {
    Statement asked(db, fmt::format("SELECT ?1 = ?2 COLLATE {}", collation));
    for (const std::string& one : keys) {
      for (const std::string& other : keys) {
        ASSERT_TRUE(asked.bind(one, other).step());
        const bool equal = asked.number(0) != 0;
        asked.reset();
        EXPECT_EQ(fold(one, collation) == fold(other, collation), equal)
            << collation << " " << testing::PrintToString(one) << " "
            << testing::PrintToString(other);
      }
    }
  }
  sqlite3_close(db);
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
