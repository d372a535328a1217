#include "http/url.h"

#include "http/message.h"

#include <gtest/gtest.h>

namespace pawl::http {
namespace {

TEST(Message, ADateIsInGmtWithEnglishNames) {
  using std::chrono::system_clock;
  EXPECT_EQ(date_text(system_clock::time_point()), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date_text(system_clock::from_time_t(951'868'799)), "Tue, 29 Feb 2000 23:59:59 GMT");
  EXPECT_EQ(date_text(system_clock::from_time_t(1'794'884'466) + std::chrono::milliseconds(999)),
            "Tue, 17 Nov 2026 03:01:06 GMT");
}

TEST(Url, PercentEncodedBytesAreDecoded) {
  EXPECT_EQ(percent_decoded("reports%2Fnightly"), "reports/nightly");
  EXPECT_EQ(percent_decoded("a+b"), "a+b");
  EXPECT_EQ(percent_decoded("%e2%82%AC"), "€");
  EXPECT_EQ(percent_decoded("%00"), std::string(1, '\0'));
  EXPECT_EQ(percent_decoded(""), "");
}

TEST(Url, APercentSignWithoutTwoHexDigitsIsRefused) {
  for (const char* text : {"%", "%2", "a%", "a%4", "%zz", "%2g", "%-1"})
    EXPECT_FALSE(percent_decoded(text)) << text;
}

TEST(Url, ThePathStaysEncodedAndTheQueryIsDecoded) {
  const auto target = parse_target("/v1/locks/a%2Fb?prefix=x%2F&limit=5&empty=&bare&q=a+b");
  ASSERT_TRUE(target) << target.error().detail;
  EXPECT_EQ(target->path, "/v1/locks/a%2Fb");
  EXPECT_EQ(target->query,
            (Query{{"prefix", "x/"}, {"limit", "5"}, {"empty", ""}, {"bare", ""}, {"q", "a b"}}));
}

TEST(Url, ATargetThatIsNotAPathOrRepeatsAParameterIsRefused) {
  EXPECT_FALSE(parse_target("http://elsewhere/v1/status"));
  EXPECT_FALSE(parse_target("*"));
  EXPECT_FALSE(parse_target(""));
  EXPECT_FALSE(parse_target("/x?a=1&a=2"));
  EXPECT_FALSE(parse_target("/x?a=%4"));
}

}  // namespace
}  // namespace pawl::http
