#include "client/backoff.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

TEST(BackoffTest, PausesDoubleUpToTheLongest) {
  SeededRandom random(7);
  Backoff backoff{50ms, 150ms};
  for (const Millis expected : {50ms, 100ms, 150ms, 150ms}) {
    const Nanos pause = backoff.next(random);
    EXPECT_GE(pause, expected / 2);
    EXPECT_LE(pause, expected);
  }
}

TEST(BackoffTest, ResetBeginsAnew) {
  SeededRandom random(7);
  Backoff backoff{50ms, 2s};
  for (int i = 0; i < 4; ++i) static_cast<void>(backoff.next(random));
  backoff.reset();
  EXPECT_LE(backoff.next(random), 50ms);
}

TEST(BackoffTest, LimitIsNotBelowTheShortestPause) {
  SeededRandom random(7);
  Backoff backoff{50ms, 2s};
  EXPECT_GE(backoff.next(random, 10ms), 25ms);
  EXPECT_LE(backoff.next(random, 60ms), 60ms);
}

}  // namespace
}  // namespace pawl::client
