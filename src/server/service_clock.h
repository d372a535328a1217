// Service time: monotonic time without the part of any pause of pawld itself beyond limits::kPauseMax.
//
//   ServiceClock clock(source);
//   const Now now = clock.now();      // once per turn, after the sockets; once more after each sync
//
// Leases run in service time. While pawld was stopped, or hung in a sync, nobody could renew; such a gap must not be
// held against them (hard case 27). A gap is what lies between two readings, so the loop has to wake often enough
// while anything runs out: every kWakeEvery. The clock knows no system call; its source does.
#pragma once

#include "base/limits.h"
#include "base/types.h"

namespace pawl::server {

inline constexpr Millis kWakeEvery{100};
static_assert(kWakeEvery < limits::kPauseMax, "an idle loop must not look like a pause");

struct ClockReading {
  Nanos monotonic{0};
  UnixMs wall{};
};

class ClockSource {
 public:
  virtual ~ClockSource() = default;
  // Never goes back in `monotonic`; `wall` does what it likes.
  virtual ClockReading read() = 0;
};

class SystemClock final : public ClockSource {
 public:
  ClockReading read() override;
};

class ServiceClock {
 public:
  explicit ServiceClock(ClockSource& source) : source_(source) {}

  // Reads the source. The first reading is service time zero.
  Now now();

  // Monotonic time between the first and the last reading, pauses included.
  [[nodiscard]] Nanos uptime() const { return last_ - first_; }
  // What of it did not count.
  [[nodiscard]] Nanos paused() const { return uptime() - counted_.time_since_epoch(); }
  [[nodiscard]] Tick last() const { return counted_; }

 private:
  ClockSource& source_;
  bool started_ = false;
  Nanos first_{0};
  Nanos last_{0};
  Tick counted_{};
};

}  // namespace pawl::server
