#include "pawld/descriptors.h"

#include <gtest/gtest.h>

namespace pawl::pawld {
namespace {

constexpr Uses kEverything{.users = true, .tls = true, .http = true};

TEST(Descriptors, ConnectionsNeverTakeMoreThanThereAre) {
  for (const Uses& uses : {kEverything, Uses{}, Uses{.users = true}, Uses{.http = true}}) {
    for (std::size_t descriptors = 14; descriptors < 20'000; descriptors += 7) {
      const ConnectionLimits limits = connection_limits(descriptors, uses);
      // The least of each is a few; below that the process could not serve at all.
      if (descriptors >= 128) {
        ASSERT_LE(limits.descriptors(uses), descriptors);
      }
      ASSERT_GE(limits.reserved, 2U);
      ASSERT_GE(limits.newcomers, 2U);
    }
  }
}

TEST(Descriptors, EnoughOfThemLeaveTheFixedLimits) {
  const std::size_t needed = ConnectionLimits().descriptors(kEverything);
  EXPECT_EQ(needed, 10'000U + 1'000U + 1'024U + 1'024U + 1'024U + 128U + 256U);
  EXPECT_EQ(connection_limits(needed, kEverything), ConnectionLimits());
  EXPECT_LT(connection_limits(needed - 1, kEverything).ordinary, ConnectionLimits().ordinary);
}

TEST(Descriptors, WhatIsNotServedNeedsNone) {
  EXPECT_EQ(ConnectionLimits().descriptors({}), 11'000U);
  EXPECT_EQ(connection_limits(11'000, {}), ConnectionLimits());
}

}  // namespace
}  // namespace pawl::pawld
