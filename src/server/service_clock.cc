#include "server/service_clock.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::server {

ClockReading SystemClock::read() {
  timespec monotonic{};
  timespec wall{};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  ::clock_gettime(CLOCK_REALTIME, &wall);
  const Nanos since_boot = std::chrono::seconds(monotonic.tv_sec) + Nanos(monotonic.tv_nsec);
  const auto unix_ms = std::int64_t{wall.tv_sec} * 1000 + wall.tv_nsec / 1'000'000;
  return {since_boot, UnixMs{static_cast<std::uint64_t>(std::max<std::int64_t>(0, unix_ms))}};
}

Nanos SystemClock::boot_time() {
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return std::chrono::seconds(since_boot.tv_sec) + Nanos(since_boot.tv_nsec);
}

Now ServiceClock::now() {
  ClockReading reading = source_.read();
  if (PAWL_MUTANT(wall_clock_decides))
    reading.monotonic = std::max<Nanos>(last_, Millis(reading.wall.value));
  if (!started_) {
    started_ = true;
    first_ = last_ = reading.monotonic;
  }
  PAWL_ASSERT(reading.monotonic >= last_);
  const Nanos gap = reading.monotonic - last_;
  const Nanos expected = std::min(gap, std::exchange(expected_, Nanos(0)));
  const Nanos longer =
      std::max<Nanos>(expected - kWakeEvery, Nanos(0));  // Than while anything runs out.
  const Nanos counted = std::min<Nanos>(gap, limits::kPauseMax + longer);
  last_pause_ = gap > counted ? gap - expected : Nanos(0);
  counted_ += counted;
  last_ = reading.monotonic;
  return {counted_, reading.wall};
}

}  // namespace pawl::server
