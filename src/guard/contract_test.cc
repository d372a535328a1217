#include <gtest/gtest.h>

#include "base/limits.h"
#include "guard/words.h"

namespace pawl::guard {
namespace {

TEST(Words, EachIsReadBackAsItIsSpelled) {
  for (const Verdict verdict :
       {Verdict::kAdmitted, Verdict::kReplayed, Verdict::kStale, Verdict::kMissing, Verdict::kAhead}) {
    EXPECT_EQ(parse_verdict(to_text(verdict)), verdict);
  }
  for (const GuardMode mode :
       {GuardMode::kObserve, GuardMode::kShadow, GuardMode::kCanary, GuardMode::kEnforce}) {
    EXPECT_EQ(parse_mode(to_text(mode)), mode);
  }
  EXPECT_FALSE(parse_verdict("Stale"));
  EXPECT_FALSE(parse_mode(""));
}

TEST(Words, ATokenIsPlainDigitsUpToTwoToTheFiftyThree) {  // Hard cases 15, 58.
  EXPECT_EQ(parse_token("1"), 1u);
  EXPECT_EQ(parse_token("9007199254740991"), limits::kTokenMax);
  for (const char* text : {"", "0", "-1", "+1", " 1", "1 ", "01", "1.0", "1e3", "9007199254740992",
                           "99999999999999999", "1,2", "0x1"}) {
    EXPECT_FALSE(parse_token(text)) << text;
  }
}

}  // namespace
}  // namespace pawl::guard
