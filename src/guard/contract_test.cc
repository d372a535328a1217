#include <gtest/gtest.h>

#include "base/limits.h"
#include "guard/words.h"

namespace pawl::guard {
namespace {

TEST(Words, EachIsReadBackAsItIsSpelled) {
  for (const Verdict verdict : {Verdict::kAdmitted, Verdict::kReplayed, Verdict::kStale,
                                Verdict::kMissing, Verdict::kAhead}) {
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

TEST(Words, NumbersAreReadOutOfARefusal) {
  for (const char* told : {"token=33 max=34 mode=enforce resource=a max=7",
                           "stale token 33 for climax=5 [token=33 max=34 mode=enforce]"}) {
    EXPECT_EQ(number_told(told, "token"), 33u) << told;
    EXPECT_EQ(number_told(told, "max"), 34u) << told;
    EXPECT_EQ(number_told(told, "step"), 0u) << told;
  }
}

TEST(Words, AModeThatRefusesNothingLetsThroughAndAnotherContractIsNamed) {
  const auto shadow = to_decision({"stale", "34", "shadow", true}, 33);
  ASSERT_TRUE(shadow);
  EXPECT_TRUE(shadow->let_through);
  EXPECT_EQ(shadow->max, 34u);
  EXPECT_FALSE(to_decision({"stale", "34", "enforce", true}, 33)->let_through);
  EXPECT_FALSE(to_decision({"perhaps", "34", "enforce", true}, 33));
  EXPECT_TRUE(insist_on_contract(std::to_string(kGuardContract), "0.1.0"));
  EXPECT_NE(insist_on_contract("99", "7.0.0").error().detail.find("contract 99"),
            std::string::npos);
}

}  // namespace
}  // namespace pawl::guard
