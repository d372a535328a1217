#include "server/turn_stats.h"

#include <gtest/gtest.h>

#include <numeric>

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

template <class H>
std::uint64_t count(const H& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0});
}

class TurnStatsTest : public testing::Test {
 protected:
  Telemetry telemetry;
  TurnStats stats{telemetry};
};

TEST_F(TurnStatsTest, EveryCommandOfATurnTookAsLongAsTheTurn) {
  stats.begin_turn(10ms);
  EXPECT_FALSE(stats.any());
  for (int i = 0; i < 3; ++i) stats.count_command(0);
  stats.count_command(telemetry.unknown());
  EXPECT_TRUE(stats.any());
  stats.end_turn(14ms);
  EXPECT_EQ(count(telemetry.commands[0].duration), 3U);
  EXPECT_DOUBLE_EQ(telemetry.commands[0].duration.sum, 3 * 4e6);
  EXPECT_EQ(count(telemetry.commands[telemetry.unknown()].duration), 1U);
  EXPECT_EQ(count(telemetry.turn), 1U);
  EXPECT_FALSE(stats.any());
}

TEST_F(TurnStatsTest, OneTurnIsNotCountedAgainInTheNext) {
  stats.count_command(1);
  stats.end_turn(1ms);
  stats.begin_turn(1ms);
  stats.count_command(1);
  stats.end_turn(2ms);
  EXPECT_EQ(count(telemetry.commands[1].duration), 2U);
}

TEST_F(TurnStatsTest, AGrantCountsItsTimeInTheQueue) {
  stats.begin_turn(0ms);
  core::Granted granted;
  stats.count_acquire(granted);
  granted.waited = Millis(30);
  stats.count_acquire(granted);
  stats.count_acquire(core::NotObtained{});
  stats.end_turn(5ms);
  EXPECT_EQ(count(telemetry.acquire), 2U);
  EXPECT_DOUBLE_EQ(telemetry.acquire.sum, 5e6 + 35e6);
  EXPECT_EQ(count(telemetry.wait), 1U) << "only of those that waited";
  EXPECT_EQ(telemetry.acquires[static_cast<std::size_t>(AcquireResult::kGranted)], 2U);
  EXPECT_EQ(telemetry.acquires[static_cast<std::size_t>(AcquireResult::kBusy)], 1U);
}

}  // namespace
}  // namespace pawl::server
