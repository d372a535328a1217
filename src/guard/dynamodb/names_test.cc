#include "guard/dynamodb/names.h"

#include <gtest/gtest.h>

#include "guard/dynamodb/expressions.h"

namespace pawl::guard {
namespace {

const DynamoItems kOrders{"orders", "id"};
const DynamoItems kLines{"shop", "pk", 'S', "sk", 'N', "order#"};

TEST(DynamoNames, PatternIsATableOrABeginningOfKeys) {
  EXPECT_EQ(parse_dynamo_pattern("orders")->table, "orders");
  EXPECT_EQ(parse_dynamo_pattern("shop/order#*")->prefix, "order#");
  for (const char* wrong : {"", "ab", "sh op", "shop/", "shop/*", "shop/a", "shop/a*b*"})
    EXPECT_FALSE(parse_dynamo_pattern(wrong)) << wrong;
}

TEST(DynamoNames, GuardIsNamedAfterWhatItGuards) {
  EXPECT_EQ(to_dynamo_protection({.table = "orders"})->guard, "orders");
  EXPECT_EQ(to_dynamo_protection({.table = "shop/order#*", .key = "*"})->guard, "order");
  EXPECT_FALSE(to_dynamo_protection({.table = "shop/a:b*"}));
  EXPECT_FALSE(to_dynamo_protection({.table = "orders", .key = "id"}));
  EXPECT_FALSE(to_dynamo_protection({.table = "orders", .by = "id"}));
}

TEST(DynamoNames, GuardsOfOneTableMayNotOverlap) {
  EXPECT_TRUE(overlap({"shop", "pk"}, kLines));
  EXPECT_TRUE(overlap({"shop", "pk", 'S', "", 'S', "order#7"}, kLines));
  EXPECT_FALSE(overlap({"shop", "pk", 'S', "", 'S', "cart#"}, kLines));
  EXPECT_FALSE(overlap(kOrders, kLines));
}

TEST(DynamoNames, NumberHasOneSpelling) {
  const std::pair<const char*, const char*> cases[] = {
      {"7", "7"},
      {"07", "7"},
      {"+7.00", "7"},
      {"7e2", "700"},
      {"-0.50", "-0.5"},
      {"5E-3", "0.005"},
      {"-0", "0"},
      {"0.0", "0"},
      {"1.25e1", "12.5"},
      {"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"}};
  for (const auto& [text, wanted] : cases) EXPECT_EQ(canonical_number(text), wanted) << text;
  for (const char* wrong : {"", "-", "a", "1e", "1.2.3", "1e999",
                            "123456789012345678901234567890123456789", " 1", "1 "})
    EXPECT_FALSE(canonical_number(wrong)) << wrong;
}

TEST(DynamoNames, KeyOfAnItemIsTheNameOfAResource) {
  EXPECT_EQ(*key_text(kOrders, {{"id", string_value("7")}}), "7");
  const boost::json::object line{{"pk", string_value("order#a:b%")}, {"sk", {{"N", "07"}}}};
  EXPECT_EQ(*key_text(kLines, line), "a%3Ab%25:7");
  EXPECT_EQ(key_fields(kLines, "a%3Ab%25:7")->at("pk"), line.at("pk"));
  EXPECT_FALSE(key_text(kOrders, {{"id", {{"N", "7"}}}}));
  EXPECT_FALSE(key_text(kOrders, {}));
  EXPECT_FALSE(key_fields(kLines, "a"));
  EXPECT_FALSE(key_fields(kLines, "a:07"));
  EXPECT_FALSE(key_fields(kLines, "a%:7"));
}

}  // namespace
}  // namespace pawl::guard
