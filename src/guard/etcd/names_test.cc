#include "guard/etcd/names.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

using Kind = EtcdOwner::Kind;

EtcdOwner owner(EtcdScope scope, const EtcdChange& change) {
  const EtcdPolicy policy{.scope = scope, .by = "/", .keys = {"cart/*"}};
  return owner_of("carts", policy, change);
}

TEST(EtcdNames, GuardIsNamedAfterItsPattern) {
  EXPECT_EQ(etcd_guard_name_of("orders/*"), "orders");
  EXPECT_EQ(etcd_guard_name_of("/orders/*"), "orders");
  EXPECT_EQ(etcd_guard_name_of("orders"), "orders");
  EXPECT_EQ(etcd_guard_name_of("/shop/orders/*"), "");
}

TEST(EtcdNames, PatternsThatShareAKeyOverlap) {
  EXPECT_TRUE(etcd_patterns_overlap("orders/*", "orders/7"));
  EXPECT_TRUE(etcd_patterns_overlap("orders/7*", "orders/*"));
  EXPECT_FALSE(etcd_patterns_overlap("orders/*", "orders"));
  EXPECT_FALSE(etcd_patterns_overlap("orders", "orders/7"));
}

TEST(EtcdNames, OneFenceOwnsEveryKeyOfItsPatterns) {
  EXPECT_EQ(owner(EtcdScope::kStatic, EtcdPut{"cart/7", ""}).name, "carts");
  EXPECT_EQ(owner(EtcdScope::kStatic, EtcdDelete{"cart/7", true}).name, "carts");
  EXPECT_EQ(owner(EtcdScope::kStatic, EtcdPut{"card/7", ""}).kind, Kind::kNone);
  EXPECT_EQ(owner(EtcdScope::kStatic, EtcdDelete{"car", true}).kind, Kind::kNone);
}

TEST(EtcdNames, PrefixThatReachesSeveralResourcesBelongsToNone) {
  EXPECT_EQ(owner(EtcdScope::kBy, EtcdPut{"cart/7/items", ""}).name, "carts:7");
  EXPECT_EQ(owner(EtcdScope::kBy, EtcdDelete{"cart/7/", true}).name, "carts:7");
  EXPECT_EQ(owner(EtcdScope::kBy, EtcdDelete{"cart/7", true}).kind, Kind::kSeveral);
  EXPECT_EQ(owner(EtcdScope::kRow, EtcdPut{"cart/7/items", ""}).name, "carts:7/items");
  EXPECT_EQ(owner(EtcdScope::kRow, EtcdDelete{"cart/7", true}).kind, Kind::kSeveral);
}

TEST(EtcdNames, GuardsCannotBePutUnderGuard) {
  for (const char* pattern : {"pawl-guard/*", "pawl-*", "*", "", "a*b", "pawl-guards/orders"})
    EXPECT_FALSE(to_etcd_protection({.table = pattern, .guard = "g"})) << pattern;
  EXPECT_TRUE(to_etcd_protection({.table = "pawl/*"}));
}

TEST(EtcdNames, FenceForEachKeyNeedsAPrefix) {
  EXPECT_FALSE(to_etcd_protection({.table = "orders", .key = "*"}));
  EXPECT_FALSE(to_etcd_protection({.table = "orders/*", .key = "id"}));
  EXPECT_EQ(to_etcd_protection({.table = "orders/*", .key = "*"})->scope, EtcdScope::kRow);
  EXPECT_FALSE(to_etcd_protection({.table = "orders/*", .guard = "a/b"}));
}

}  // namespace
}  // namespace pawl::guard
