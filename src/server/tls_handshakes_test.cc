#include "server/tls_handshakes.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

constexpr ConnectionId kFirst{1}, kSecond{2}, kThird{3};

TEST(TlsHandshakes, TakeTurnsInTheOrderInWhichTheyBecameReady) {
  TlsHandshakes handshakes;
  for (const ConnectionId id : {kFirst, kSecond, kThird}) EXPECT_FALSE(handshakes.begin(id, 0s));
  EXPECT_EQ(handshakes.next_ready(), std::nullopt);
  for (const ConnectionId id : {kThird, kFirst, kThird}) handshakes.mark_ready(id);
  EXPECT_EQ(handshakes.next_ready(), kThird);
  handshakes.mark_ready(kThird);  // Its second step queues behind the others' first.
  EXPECT_EQ(handshakes.next_ready(), kFirst);
  EXPECT_EQ(handshakes.next_ready(), kThird);
  EXPECT_EQ(handshakes.next_ready(), std::nullopt);
}

TEST(TlsHandshakes, OneThatHasEndedHasNoTurnAnyMore) {
  TlsHandshakes handshakes;
  EXPECT_FALSE(handshakes.begin(kFirst, 0s));
  handshakes.mark_ready(kFirst);
  handshakes.end(kFirst);
  EXPECT_TRUE(handshakes.empty());
  EXPECT_EQ(handshakes.next_ready(), std::nullopt);
  EXPECT_EQ(handshakes.patience(0s), Nanos::max());
}

TEST(TlsHandshakes, SilentHandshakesAreDroppedAndReadyOnesStay) {
  TlsHandshakes handshakes({.patience = 10s});
  EXPECT_FALSE(handshakes.begin(kFirst, 0s));
  EXPECT_FALSE(handshakes.begin(kSecond, 1s));
  EXPECT_FALSE(handshakes.begin(kThird, 2s));
  handshakes.mark_ready(kFirst);
  EXPECT_EQ(handshakes.next_late(9s), std::nullopt);
  EXPECT_EQ(handshakes.next_late(11s), kSecond);
  EXPECT_EQ(handshakes.next_late(11s), std::nullopt);
}

TEST(TlsHandshakes, OfTooManyTheOldestOfTheSilentMakesRoom) {
  TlsHandshakes handshakes({.under_way = 2});
  EXPECT_FALSE(handshakes.begin(kFirst, 0s));
  EXPECT_FALSE(handshakes.begin(kSecond, 0s));
  handshakes.mark_ready(kFirst);
  EXPECT_FALSE(handshakes.full());
  EXPECT_EQ(handshakes.begin(kThird, 0s), kSecond);
  EXPECT_EQ(handshakes.next_ready(), kFirst);
}

TEST(TlsHandshakes, AreFullWhenAllOfThemWaitForUs) {
  TlsHandshakes handshakes({.under_way = 2});
  EXPECT_FALSE(handshakes.begin(kFirst, 0s));
  handshakes.mark_ready(kFirst);
  EXPECT_FALSE(handshakes.full());
  EXPECT_FALSE(handshakes.begin(kSecond, 0s));
  handshakes.mark_ready(kSecond);
  EXPECT_TRUE(handshakes.full());
  EXPECT_EQ(handshakes.next_ready(), kFirst);
  EXPECT_FALSE(handshakes.full());
}

TEST(TlsHandshakes, TheLoopSleepsUntilTheFirstHandshakeIsLate) {
  TlsHandshakes handshakes({.patience = 10s});
  EXPECT_FALSE(handshakes.begin(kFirst, 0s));
  EXPECT_FALSE(handshakes.begin(kSecond, 5s));
  EXPECT_EQ(handshakes.patience(4s), 6s);
  EXPECT_EQ(handshakes.patience(40s), 0s);
  handshakes.mark_ready(kSecond);
  EXPECT_EQ(handshakes.patience(4s), 0s);
}

}  // namespace
}  // namespace pawl::server
