#include "api/json.h"

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

namespace pawl::api {
namespace {

std::string wrong_in(std::string_view text) {
  Body body(text);
  body.number("n");
  body.text("s");
  body.boolean("b");
  body.texts("list");
  body.pairs("map");
  const auto wrong = body.finish();
  return wrong ? wrong->detail : "";
}

TEST(Body, WhatFitsIsReadAndNullIsNothing) {
  Body body(R"({"n":9007199254740991,"s":"x","b":true,"list":["a","b"],"map":{"k":"v"},"gone":null})");
  EXPECT_EQ(body.number("n"), 9007199254740991U);
  EXPECT_EQ(body.text("s"), "x");
  EXPECT_EQ(body.boolean("b"), true);
  EXPECT_EQ(body.texts("list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(body.pairs("map"), (std::vector<std::pair<std::string, std::string>>{{"k", "v"}}));
  EXPECT_EQ(body.text("gone"), std::nullopt);
  EXPECT_EQ(body.text("missing"), std::nullopt);
  EXPECT_FALSE(body.finish());
  EXPECT_FALSE(Body("").finish());
}

TEST(Body, AMemberThatNobodyAskedForIsNamed) {
  EXPECT_EQ(wrong_in(R"({"n":1,"nn":2})"), "unknown member 'nn'");
}

// Hard case 15: nothing is rounded on the way in.
TEST(Body, ANumberIsWholeAndNotNegativeOrItIsRefused) {
  for (const char* text : {R"({"n":-1})", R"({"n":1.5})", R"({"n":1.0})", R"({"n":1e3})", R"({"n":"1"})",
                           R"({"n":18446744073709551616})", R"({"n":true})"}) {
    EXPECT_EQ(wrong_in(text), "n must be a whole number, 0 or more") << text;
  }
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
