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

TEST_F(ServiceClockTest, StartsAtZeroWhateverTheMachineSays) {
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
