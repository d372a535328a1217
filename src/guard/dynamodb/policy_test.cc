#include "guard/dynamodb/policy.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(DynamoPolicyText, IsReadBackAsItWasWritten) {
  DynamoPolicy policy{.version = "0.1.0", .contract = "1", .mode = GuardMode::kCanary};
  policy.percent = 10;
  policy.require_token = true;
  policy.scope = DynamoScope::kRow;
  policy.items = {{"orders", "id"}, {"shop", "pk", 'S', "sk", 'N', "order# 1"}};
  EXPECT_EQ(parse_dynamo_policy(to_text(policy)), policy);
}

TEST(DynamoPolicyText, DamageIsNoticed) {
  for (const char* wrong :
       {"", "mode=enforce\n", "contract=1\nmode=other\n", "contract=1\nfloor=-1\n",
        "contract=1\nitems=orders id X - - \n", "contract=1"})
    EXPECT_FALSE(parse_dynamo_policy(wrong)) << wrong;
}

TEST(DynamoFenceItem, NumbersAreExact) {
  const auto fence = read_fence(
      {{"pawl_token", {{"N", "9007199254740991"}}}, {"pawl_op", {{"N", "9007199254740990"}}}});
  ASSERT_TRUE(fence);
  EXPECT_EQ(fence->token, 9007199254740991u);
  EXPECT_EQ(fence->operation, 9007199254740990u);
  EXPECT_EQ(read_fence({})->token, 0u);
}

TEST(DynamoFenceItem, DamageIsNoticed) {
  for (const char* wrong : {"0", "-1", "1.5", "9007199254740992", "1e3", ""})
    EXPECT_FALSE(read_fence({{"pawl_token", {{"N", wrong}}}})) << wrong;
  EXPECT_FALSE(read_fence({{"pawl_token", {{"S", "34"}}}}));
  EXPECT_FALSE(read_fence({{"pawl_op", {{"N", "3"}}}}));
}

}  // namespace
}  // namespace pawl::guard
