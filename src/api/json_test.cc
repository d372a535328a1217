#include "api/json.h"

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

namespace pawl::api {
namespace {

const std::vector<std::string_view> kMembers{"n", "s", "b", "list", "map", "gone", "max_hold_ms"};

http::Problem problem_in(std::string_view text) {
  Body body(text, kMembers);
  body.number("n", {2, 9007199254740991});
  body.text("s", {1, 5});
  body.boolean("b");
  body.texts("list");
  body.pairs("map");
  return body.finish().value_or(http::Problem{});
}

std::string wrong_in(std::string_view text) {
  return problem_in(text).detail;
}

TEST(Body, WhatFitsIsReadAndNullIsNothing) {
  Body body(
      R"({"n":9007199254740991,"s":"x","b":true,"list":["a","b"],"map":{"k":"v"},"gone":null})",
      kMembers);
  EXPECT_EQ(body.number("n", {0, 9007199254740991}), 9007199254740991U);
  EXPECT_EQ(body.text("s", {1, 5}), "x");
  EXPECT_EQ(body.boolean("b"), true);
  EXPECT_EQ(body.texts("list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(body.pairs("map"), (std::vector<std::pair<std::string, std::string>>{{"k", "v"}}));
  EXPECT_EQ(body.text("gone", {1, 5}), std::nullopt);
  EXPECT_EQ(body.text("missing", {1, 5}), std::nullopt);
  EXPECT_FALSE(body.finish());
}

TEST(Body, AnEmptyBodyIsRightOnlyWhereNoMemberIsTaken) {
  EXPECT_FALSE(Body("", {}).finish());
  EXPECT_FALSE(Body("{}", {}).finish());
  EXPECT_EQ(
      wrong_in(""),
      "the body is empty; it must be a JSON object with n, s, b, list, map, gone, max_hold_ms");
}

TEST(Body, AnUnknownMemberIsNamedFirstWithTheLikelyOne) {
  EXPECT_EQ(wrong_in(R"({"n":1,"nn":2})"),
            "unknown member 'nn'; expected one of n, s, b, list, map, gone, max_hold_ms");
  for (const char* slip :
       {"max_hold", "maxHoldMs", "MAX-HOLD-MS", "max_hold_m", "max_holdms", "mxa_hold_ms"}) {
    EXPECT_EQ(wrong_in("{\"n\":\"wrong too\",\"" + std::string(slip) + "\":1}"),
              "unknown member '" + std::string(slip) + "'; did you mean max_hold_ms?");
  }
  EXPECT_EQ(Body(R"({"lease":1})", {}).finish()->detail,
            "unknown member 'lease'; this route takes none");
}

TEST(Body, AMemberGivenTwiceIsRefusedAtAnyDepthHoweverItIsWritten) {
  EXPECT_EQ(wrong_in(R"({"n":5,"n":5})"), "the member 'n' is given twice");
  EXPECT_EQ(wrong_in(R"({"n":5, "\u006e" : 6})"), "the member 'n' is given twice");
  EXPECT_EQ(wrong_in(R"({"map":{"k":"v","k":"w"}})"), "the member 'k' is given twice");
  EXPECT_EQ(wrong_in(R"({"map":{"n":"n:","\"n":"}"},"n":5,"list":["n","n"],"s":"{n\\"})"), "");
}

// Hard case 15: nothing is rounded on the way in.
TEST(Body, ANumberIsWholeAndNotNegativeOrItIsRefused) {
  for (const char* text : {R"({"n":-1})", R"({"n":1.5})", R"({"n":1.0})", R"({"n":1e3})",
                           R"({"n":"1"})", R"({"n":18446744073709551616})", R"({"n":true})"}) {
    EXPECT_EQ(wrong_in(text), "n must be a whole number, 2 to 9007199254740991") << text;
  }
}

TEST(Body, WhatIsOutOfRangeIsRefusedWithTheRangeAndNothingIsClamped) {
  EXPECT_EQ(wrong_in(R"({"n":1})"), "n must be 2 to 9007199254740991, got 1");
  EXPECT_EQ(wrong_in(R"({"n":9007199254740992})"),
            "n must be 2 to 9007199254740991, got 9007199254740992");
  EXPECT_EQ(wrong_in(R"({"s":""})"), "s must be 1 to 5 bytes, got 0");
  EXPECT_EQ(wrong_in(R"({"s":"sixsix"})"), "s takes at most 5 bytes, got 6");
  EXPECT_EQ(problem_in(R"({"s":"sixsix"})").code, "too_long");
  EXPECT_EQ(wrong_in(R"({"s":"a\nb"})"), "s must be UTF-8 without control characters");
}

TEST(Body, TheFirstThingThatIsWrongIsNamed) {
  EXPECT_EQ(wrong_in(R"({"s":1})"), "s must be a string");
  EXPECT_EQ(wrong_in(R"({"b":"true"})"), "b must be true or false");
  EXPECT_EQ(wrong_in(R"({"list":"a"})"), "list must be an array of strings");
  EXPECT_EQ(wrong_in(R"({"list":[1]})"), "list must be an array of strings");
  EXPECT_EQ(wrong_in(R"({"map":{"k":1}})"), "map must be an object of strings");
  EXPECT_EQ(wrong_in("[1]"), "the body must be a JSON object");
  EXPECT_TRUE(wrong_in("{").starts_with("the body is not JSON"));
  EXPECT_TRUE(wrong_in("{} {}").starts_with("the body is not JSON"));
  EXPECT_TRUE(wrong_in("\xff").starts_with("the body is not JSON"));
  EXPECT_TRUE(wrong_in(std::string(1000, '[')).starts_with("the body is not JSON"));
}

TEST(Json, RepliesKeepTheirShape) {
  wire::Value map;
  map.kind = wire::Value::Kind::kMap;
  map.items = {wire::Value::of("token"), wire::Value::of(9007199254740991), wire::Value::of("slot"),
               wire::Value::null()};
  EXPECT_EQ(boost::json::serialize(to_json(map)), R"({"token":9007199254740991,"slot":null})");
}

}  // namespace
}  // namespace pawl::api
