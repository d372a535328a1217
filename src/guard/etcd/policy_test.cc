#include "guard/etcd/policy.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(EtcdFence, TextsAreOrderedAsTokensAndOperations) {
  const std::vector<EtcdFence> ordered{{0, {}},
                                       {9, {}},
                                       {9, 0},
                                       {9, 2},
                                       {9, 10},
                                       {10, {}},
                                       {10, 0},
                                       {100, 7},
                                       {kEtcdTokenMax - 1, 1},
                                       {kEtcdTokenMax, kEtcdTokenMax}};
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i)
    EXPECT_LT(to_text(ordered[i]), to_text(ordered[i + 1])) << i;
}

TEST(EtcdFence, FencesOfOneTokenAreBetweenItsBounds) {
  for (const EtcdFence& fence : {EtcdFence{9, {}}, EtcdFence{9, 0}, EtcdFence{9, kEtcdTokenMax}}) {
    EXPECT_LE(first_fence_of(9), to_text(fence));
    EXPECT_GT(end_of_fences_of(9), to_text(fence));
    EXPECT_LT(end_of_fences_of(8), to_text(fence));
    EXPECT_GT(first_fence_of(10), to_text(fence));
  }
}

TEST(EtcdFence, ReadsBackWhatItWrites) {
  for (const EtcdFence& fence : {EtcdFence{0, {}}, EtcdFence{34, 8}, EtcdFence{kEtcdTokenMax, 0}})
    EXPECT_EQ(parse_etcd_fence(to_text(fence)), fence);
}

TEST(EtcdFence, AnythingElseIsNoFence) {
  for (const char* text :
       {"", "34", "000000000000003x", "00000000000000034", "0000000000000034 ",
        "0000000000000034 8", "0000000000000034_0000000000000008", "9007199254740992"})
    EXPECT_FALSE(parse_etcd_fence(text)) << text;
}

TEST(EtcdPolicy, ReadsBackWhatItWrites) {
  const EtcdPolicy policy{.version = "0.1.0",
                          .contract = "1",
                          .mode = GuardMode::kCanary,
                          .percent = 10,
                          .require_token = true,
                          .equal = EtcdEqual::kOnce,
                          .max_step = kEtcdTokenMax,
                          .floor = 7,
                          .scope = EtcdScope::kBy,
                          .by = "=",
                          .change = 3,
                          .since = 1700000000,
                          .missing_before = 1,
                          .would_refuse_before = 2,
                          .keys = {"a=b/*", "c"}};
  EXPECT_EQ(parse_etcd_policy(to_text(policy)), policy);
}

TEST(EtcdPolicy, DamagedTextIsNoPolicy) {
  const std::string text = to_text(EtcdPolicy{.version = "0.1.0", .contract = "1"});
  EXPECT_FALSE(parse_etcd_policy(""));
  EXPECT_FALSE(parse_etcd_policy("{}"));
  EXPECT_FALSE(parse_etcd_policy(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(parse_etcd_policy(text + "mode=perhaps\n"));
  EXPECT_FALSE(parse_etcd_policy(text + "floor=-1\n"));
  EXPECT_TRUE(parse_etcd_policy(text + "of_a_newer_version=1\n"));
}

}  // namespace
}  // namespace pawl::guard
