#include "guard/dynamodb/access.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(DynamoAccess, PolicyThatIsPrintedIsRecognized) {
  for (const DynamoScope scope : {DynamoScope::kStatic, DynamoScope::kRow}) {
    const std::string policy = dynamo_table_policy("arn:aws:dynamodb:a:1:table/orders", scope);
    EXPECT_TRUE(policy_refuses_others(policy)) << policy;
  }
  EXPECT_FALSE(policy_refuses_others(""));
  EXPECT_FALSE(policy_refuses_others("{}"));
  EXPECT_FALSE(policy_refuses_others(R"({"Statement":[{"Sid":"PawlGuardNever","Effect":"Deny"},)"
                                     R"({"Sid":"PawlGuardUnfenced","Effect":"Allow"}]})"));
}

}  // namespace
}  // namespace pawl::guard
