#include "server/service_clock.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

struct HandFed final : ClockSource {
  ClockReading read() override { return reading; }
  ClockReading reading{Nanos(1'000'000), UnixMs{1'700'000'000'000}};
};

struct ServiceClockTest : testing::Test {
  Nanos after(Nanos gap) {
    source.reading.monotonic += gap;
    return clock.now().tick.time_since_epoch();
  }
  HandFed source;
  ServiceClock clock{source};
};

TEST_F(ServiceClockTest, StartsAtZero) {
  EXPECT_EQ(after(5h), 0ns);
}

TEST_F(ServiceClockTest, OrdinaryGapsCountInFull) {
  after(0ns);
  EXPECT_EQ(after(100ms), 100ms);
  EXPECT_EQ(after(limits::kPauseMax), 350ms);
  EXPECT_EQ(clock.paused(), 0ns);
}

// Hard case 27.
TEST_F(ServiceClockTest, APauseCountsNoMoreThanItsBound) {
  after(0ns);
  EXPECT_EQ(after(45s), limits::kPauseMax);
  EXPECT_EQ(clock.paused(), 45s - limits::kPauseMax);
  EXPECT_EQ(clock.uptime(), 45s);
}

TEST_F(ServiceClockTest, ManyPausesEachCountOnce) {
  after(0ns);
  for (int i = 0; i < 10; ++i) after(3s);
  EXPECT_EQ(clock.last().time_since_epoch(), 10 * limits::kPauseMax);
}

// An idle pawld counted its own sleep as pauses, and the alert for them never went off again.
TEST_F(ServiceClockTest, ASleepThatTheLoopAskedForIsNoPause) {
  after(0ns);
  for (int i = 0; i < 60; ++i) {
    clock.expect_sleep(1s);
    after(1s + 100us);  // Nobody wakes on the dot.
  }
  EXPECT_EQ(clock.paused(), 0ns);
  EXPECT_EQ(clock.last_pause(), 0ns);
  EXPECT_EQ(clock.last().time_since_epoch(), 60s + 6ms);
}

TEST_F(ServiceClockTest, StandingStillBeyondTheSleepIsAPauseAsLongAsTheExcess) {
  after(0ns);
  clock.expect_sleep(1s);
  after(5s);
  EXPECT_EQ(clock.paused(), 4s - (limits::kPauseMax - kWakeEvery));
  EXPECT_EQ(clock.last_pause(), 4s);
  after(3s);  // The announcement held for one gap only.
  EXPECT_EQ(clock.last_pause(), 3s);
  after(10ms);
  EXPECT_EQ(clock.last_pause(), 0ns);
}

// With leases alive the loop sleeps at most kWakeEvery: what counts against them must stay what it
// was.
TEST_F(ServiceClockTest, AShortSleepLeavesTheBoundOfAPauseAsItIs) {
  after(0ns);
  clock.expect_sleep(kWakeEvery);
  EXPECT_EQ(after(4s + kWakeEvery), limits::kPauseMax);
  EXPECT_EQ(clock.last_pause(), 4s);
}

// Hard case 26.
TEST_F(ServiceClockTest, TheWallClockDecidesNothing) {
  after(0ns);
  source.reading.wall = UnixMs{0};
  EXPECT_EQ(after(10ms), 10ms);
  source.reading.wall = UnixMs{9'999'999'999'999};
  EXPECT_EQ(after(10ms), 20ms);
}

TEST(SystemClock, IsReadWithoutGoingBack) {
  SystemClock source;
  const ClockReading first = source.read();
  EXPECT_LE(first.monotonic, source.read().monotonic);
  EXPECT_GT(first.wall.value, 1'600'000'000'000U);
}

}  // namespace
}  // namespace pawl::server
