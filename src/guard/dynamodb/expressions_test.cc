#include "guard/dynamodb/expressions.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

DynamoOp update_of(std::string update) {
  return {.kind = DynamoOp::Kind::kUpdate, .table = "orders", .update = std::move(update)};
}

TEST(DynamoExpressions, FenceJoinsTheClausesOfTheUser) {
  const DynamoFence fence{34, 5, "n"};
  const std::pair<const char*, const char*> cases[] = {
      {"SET a = :a",
       "SET #pawl_n = :pawl_n, #pawl_t = :pawl_t, #pawl_o = :pawl_o, a = :a "
       "REMOVE #pawl_g"},
      {"remove b set a.set = :a",
       "remove #pawl_g, b set #pawl_n = :pawl_n, #pawl_t = :pawl_t, #pawl_o = :pawl_o, a.set = :a"},
      {"ADD #set :set",
       "ADD #set :set SET #pawl_n = :pawl_n, #pawl_t = :pawl_t, #pawl_o = "
       ":pawl_o REMOVE #pawl_g"}};
  for (const auto& [given, wanted] : cases) {
    DynamoOp op = update_of(given);
    add_fence(op, fence, {});
    EXPECT_EQ(op.update, wanted);
  }
}

TEST(DynamoExpressions, FenceIsBesideTheConditionOfTheUser) {
  DynamoOp op{.table = "orders", .condition = "a = :a OR b = :b"};
  add_test(op, {.token = 34, .operation = 5});
  EXPECT_EQ(op.condition,
            "(a = :a OR b = :b) AND (attribute_not_exists(#pawl_t) OR #pawl_t BETWEEN :pawl_from "
            "AND :pawl_to OR (#pawl_t = :pawl_is AND (attribute_not_exists(#pawl_o) OR #pawl_o < "
            ":pawl_before)))");
  EXPECT_EQ(op.values.at(":pawl_to"), number_value(33));
}

TEST(DynamoExpressions, ReservedNamesAreRefused) {
  EXPECT_TRUE(check_reserved(update_of("SET a = :a")));
  EXPECT_FALSE(check_reserved(update_of("SET pawl_token = :a")));
  DynamoOp op = update_of("SET #x = :a");
  op.names["#x"] = "pawl_token";
  EXPECT_FALSE(check_reserved(op));
  op.names["#x"] = "a";
  op.values[":pawl_t"] = number_value(1);
  EXPECT_FALSE(check_reserved(op));
  EXPECT_FALSE(check_reserved({.fields = {{"pawl_token", number_value(1)}}}));
  EXPECT_FALSE(check_reserved({.condition = "attribute_exists(pawl_token)"}));
}

TEST(DynamoExpressions, DeletionLeavesTheFence) {
  DynamoOp op{.kind = DynamoOp::Kind::kDelete, .table = "orders"};
  add_fence(op, {34, 0, "n"}, {{"id", string_value("7")}});
  EXPECT_EQ(op.kind, DynamoOp::Kind::kPut);
  EXPECT_EQ(op.fields.at("id"), string_value("7"));
  EXPECT_EQ(op.fields.at("pawl_token"), number_value(34));
  EXPECT_TRUE(op.fields.contains("pawl_gone"));
}

TEST(DynamoExpressions, BodyHasOnlyWhatThereIs) {
  const auto body = to_body({.table = "orders", .fields = {{"id", string_value("7")}}});
  EXPECT_EQ(body.size(), 2u);
  EXPECT_TRUE(to_element({.kind = DynamoOp::Kind::kCheck}).contains("ConditionCheck"));
}

}  // namespace
}  // namespace pawl::guard
