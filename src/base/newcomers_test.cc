#include "base/newcomers.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

using namespace std::chrono_literals;

TEST(Newcomers, OfTooManyTheOldestOfTheSilentGoes) {
  Newcomers newcomers({.most = 2, .patience = 10s});
  EXPECT_EQ(newcomers.add(1, 0s), std::nullopt);
  EXPECT_EQ(newcomers.add(2, 0s), std::nullopt);
  newcomers.set_waits_for_us(1, true);
  EXPECT_EQ(newcomers.add(3, 1s), 2U);
  EXPECT_TRUE(newcomers.contains(1) && newcomers.contains(3));
  newcomers.set_waits_for_us(1, false);
  EXPECT_EQ(newcomers.add(4, 2s), 1U) << "it is the oldest again";
}

TEST(Newcomers, TalkingWithoutEndDoesNotKeepOthersOut) {
  Newcomers newcomers({.most = 2, .patience = 10s});
  for (const Newcomers::Id id : {1U, 2U}) {
    EXPECT_EQ(newcomers.add(id, 0s), std::nullopt);
    newcomers.set_waits_for_us(id, true);
  }
  EXPECT_TRUE(newcomers.all_wait_for_us());
  EXPECT_EQ(newcomers.displace_silent(), std::nullopt);
  EXPECT_EQ(newcomers.add(3, 0s), 1U);
}

TEST(Newcomers, AreLateWhenTheirTimeIsOver) {
  Newcomers newcomers({.most = 9, .patience = 10s});
  EXPECT_EQ(newcomers.next_deadline(), Nanos::max());
  for (const Newcomers::Id id : {1U, 2U, 3U}) EXPECT_EQ(newcomers.add(id, 1s * id), std::nullopt);
  newcomers.set_waits_for_us(2, true);
  newcomers.remove(1);
  newcomers.remove(1);
  EXPECT_EQ(newcomers.next_deadline(), 13s);
  EXPECT_EQ(newcomers.next_late(12s), std::nullopt) << "the second one waits for us";
  newcomers.set_waits_for_us(2, false);
  EXPECT_EQ(newcomers.next_late(12s), 2U);
  EXPECT_EQ(newcomers.next_late(12s), std::nullopt);
  EXPECT_EQ(newcomers.next_late(13s), 3U);
  EXPECT_TRUE(newcomers.empty());
}

}  // namespace
}  // namespace pawl
