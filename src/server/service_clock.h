// Service time: monotonic time without the part of any pause of pawld itself beyond
// limits::kPauseMax.
//
//   ServiceClock clock(source);
//   const Now now = clock.now();  // once per turn, after the sockets; once more after each sync
//
// Leases run in service time. While pawld was stopped, or hung in a sync, nobody could renew; such
// a gap must not be held against them (hard case 27). A gap is what lies between two readings, so
// the loop has to wake often enough while anything runs out: every kWakeEvery. Where nothing does,
// the loop may sleep longer; it announces that with expect_sleep(), and the announced part of the
// gap is neither a pause nor cut. The clock makes no system call; its source does.
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
  // Like `monotonic`, but it goes on while the machine sleeps: the clock of agreements with other
  // machines. A clock of tests, whose machine never sleeps, needs no other.
  virtual Nanos boot_time() { return read().monotonic; }
};

class SystemClock final : public ClockSource {
 public:
  ClockReading read() override;
  Nanos boot_time() override;
};

class ServiceClock {
 public:
  explicit ServiceClock(ClockSource& source) : source_(source) {}

  // Reads the source. The first reading is service time zero.
  Now now();

  // The next gap contains a sleep of at most this length that the loop asked for. Holds for one
  // reading.
  void expect_sleep(Nanos at_most) { expected_ = at_most; }

  // How far the last gap went beyond the announced sleep, if that was a pause; zero otherwise.
  [[nodiscard]] Nanos last_pause() const { return last_pause_; }

  // Monotonic time between the first and the last reading, pauses included.
  [[nodiscard]] Nanos uptime() const { return last_ - first_; }
  // The same until this moment. Reads the source, but is not a reading of service time: it begins
  // no new gap.
  [[nodiscard]] Nanos uptime_now() { return source_.read().monotonic - first_; }
  // CLOCK_BOOTTIME at this moment; not a reading of service time either.
  [[nodiscard]] Nanos boot_time_now() { return source_.boot_time(); }
  // What of it did not count.
  [[nodiscard]] Nanos paused() const { return uptime() - counted_.time_since_epoch(); }
  [[nodiscard]] Tick last() const { return counted_; }

 private:
  ClockSource& source_;
  bool started_ = false;
  Nanos first_{0};
  Nanos last_{0};
  Nanos expected_{0};
  Nanos last_pause_{0};
  Tick counted_{};
};

}  // namespace pawl::server
