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

// How many of 100 peers stay until `flood` others have come, each of which finds all places taken.
int stay_through(std::uint64_t flood, bool by_chance) {
  int stayed = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SeededRandom random(seed);
    Newcomers newcomers({.most = 64, .patience = 10s, .random = by_chance ? &random : nullptr});
    Newcomers::Id id = 1;
    for (; id <= 63; ++id) EXPECT_EQ(newcomers.add(id, 0s), std::nullopt);
    const Newcomers::Id slow = id++;
    EXPECT_EQ(newcomers.add(slow, 0s), std::nullopt);
    for (std::uint64_t i = 0; i < flood; ++i) {
      const auto gone = newcomers.add(id++, 0s);
      EXPECT_TRUE(gone && !newcomers.contains(*gone));
    }
    EXPECT_EQ(newcomers.size(), 64U);
    stayed += newcomers.contains(slow);
  }
  return stayed;
}

TEST(Newcomers, OneThatIsSlowerThanAFloodStaysSometimesIfChanceDecides) {
  EXPECT_EQ(stay_through(128, false), 0);
  const int stayed = stay_through(128, true);  // (1 - 1/64)^128 is 13 %.
  EXPECT_GT(stayed, 4);
  EXPECT_LT(stayed, 30);
}

TEST(Newcomers, ChanceDecidesOnlyAmongThoseThatWaitForTheirPeer) {
  SeededRandom random(1);
  Newcomers newcomers({.most = 3, .patience = 10s, .random = &random});
  for (const Newcomers::Id id : {1U, 2U, 3U}) EXPECT_EQ(newcomers.add(id, 0s), std::nullopt);
  newcomers.set_waits_for_us(1, true);
  newcomers.set_waits_for_us(3, true);
  for (Newcomers::Id id = 4; id < 100; ++id) EXPECT_EQ(newcomers.add(id, 0s), id == 4 ? 2 : id - 1);
  EXPECT_TRUE(newcomers.contains(1) && newcomers.contains(3));
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
