#include <gtest/gtest.h>

#include "base/limits.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

TEST(Words, AreReadBackAsTheyAreSpelled) {
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

TEST(Words, TokenIsPlainDigitsBelowTwoToThe53) {  // Hard cases 15, 58.
  EXPECT_EQ(parse_token("1"), 1u);
  EXPECT_EQ(parse_token("9007199254740991"), limits::kTokenMax);
  for (const char* text : {"", "0", "-1", "+1", " 1", "1 ", "01", "1.0", "1e3", "9007199254740992",
                           "99999999999999999", "1,2", "0x1"}) {
    EXPECT_FALSE(parse_token(text)) << text;
  }
}

TEST(Words, FieldsAreReadOutOfARefusal) {
  for (const char* refusal : {"token=33 max=34 mode=enforce resource=a max=7",
                              "stale token 33 for climax=5 [token=33 max=34 mode=enforce]"}) {
    EXPECT_EQ(parse_field(refusal, "token"), 33u) << refusal;
    EXPECT_EQ(parse_field(refusal, "max"), 34u) << refusal;
    EXPECT_EQ(parse_field(refusal, "step"), 0u) << refusal;
  }
}

TEST(Words, AnotherContractVersionIsNamed) {
  EXPECT_TRUE(check_contract_version(std::to_string(kGuardContract), "0.1.0"));
  EXPECT_NE(check_contract_version("99", "7.0.0").error().detail.find("contract 99"),
            std::string::npos);
}

}  // namespace
}  // namespace pawl::guard
