#include "guard/redis/names.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(RedisNames, GuardIsNamedAfterWhatItsKeysBeginWith) {
  for (const char* pattern : {"orders", "orders:*", "{orders}:*", "orders/*"})
    EXPECT_EQ(guard_name_of(pattern), "orders") << pattern;
  for (const char* pattern : {"*", "shop:orders:*", "{shop}:orders:*"})
    EXPECT_EQ(guard_name_of(pattern), "") << pattern;
}

TEST(RedisNames, PatternsOverlapWhereOneKeyIsOfBoth) {
  EXPECT_TRUE(overlap("orders:*", "orders:7"));
  EXPECT_TRUE(overlap("orders:7:*", "orders:*"));
  EXPECT_TRUE(overlap("orders", "orders"));
  EXPECT_FALSE(overlap("orders", "orders:*"));
  EXPECT_FALSE(overlap("orders:*", "order:*"));
  EXPECT_FALSE(overlap("orders:7", "orders:70"));
}

TEST(RedisNames, ClusterNeedsTheHashTagOfTheGuard) {
  EXPECT_TRUE(to_redis_protection({.table = "{orders}:*"}, true));
  EXPECT_FALSE(to_redis_protection({.table = "orders:*"}, true));
  EXPECT_FALSE(to_redis_protection({.table = "{orders}:*", .guard = "shop"}, true));
  EXPECT_TRUE(to_redis_protection({.table = "orders:*"}, false));
}

TEST(RedisNames, KindFollowsFromKeyAndBy) {
  EXPECT_EQ(to_redis_protection({.table = "orders:*"}, false)->kind, "static");
  EXPECT_EQ(to_redis_protection({.table = "orders:*", .key = "*"}, false)->kind, "row");
  EXPECT_EQ(to_redis_protection({.table = "orders:*", .by = ":"}, false)->kind, "by");
  EXPECT_FALSE(to_redis_protection({.table = "orders:*", .key = "id"}, false));
}

}  // namespace
}  // namespace pawl::guard
