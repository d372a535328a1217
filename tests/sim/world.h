// The simulated world: true time that moves from event to event, and one source of chance.
// Everything that happens in a run is a function of its seed.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "base/random.h"
#include "base/types.h"

namespace pawl::sim {

// True time, which no part of the simulation can read.
struct TrueTime {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<TrueTime>;
  static constexpr bool is_steady = true;
};
using Moment = TrueTime::time_point;

// A node's own monotonic clock: an offset, and a rate that differs a little from the world's.
struct Rate {
  Nanos offset{0};
  std::int64_t parts_per_million = 1'000'000;

  [[nodiscard]] Nanos local(Moment moment) const {
    const auto elapsed = moment.time_since_epoch().count();
    return offset + Nanos(elapsed / 1'000'000 * parts_per_million +
                          elapsed % 1'000'000 * parts_per_million / 1'000'000);
  }
  // The first moment at which the local clock shows at least `local`.
  [[nodiscard]] Moment moment(Nanos local) const {
    const auto ticks = (local - offset).count();
    return Moment(Nanos(ticks / parts_per_million * 1'000'000 +
                        ticks % parts_per_million * 1'000'000 / parts_per_million + 2));
  }
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] Moment now() const { return now_; }
  Random& random() { return random_; }

  // --- Chance ------------------------------------------------------------------------------------
  bool chance(unsigned percent) { return random_.below(100) < percent; }
  Nanos between(Nanos least, Nanos most) {
    return least + Nanos(static_cast<Nanos::rep>(
                       random_.below(static_cast<std::uint64_t>((most - least).count()) + 1)));
  }

  // --- Events: at a moment not before now; equal moments in the order they were asked for. -------
  void at(Moment moment, std::function<void()> event) {
    events_.emplace(std::pair(std::max(moment, now_), ++asked_), std::move(event));
  }
  void after(Nanos delay, std::function<void()> event) { at(now_ + delay, std::move(event)); }
  void run_until(Moment end) {
    while (!events_.empty() && events_.begin()->first.first <= end) {
      now_ = events_.begin()->first.first;
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
    now_ = end;
  }

  // --- The trace: what happened, in words; also the fingerprint of the run. ----------------------
  // Formatting costs more than the run itself, so it happens only when the trace is printed. The
  // fingerprint is of what happened when, in either case.
  void keep_trace() { tracing_ = true; }
  template <class Words>
  void note(const Words& words) {
    fingerprint_ = (fingerprint_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count())) *
                   0x9e3779b97f4a7c15;
    fingerprint_ ^= fingerprint_ >> 29;
    if (!tracing_) return;
    if constexpr (std::is_invocable_v<Words>) {
      write(words());
    } else {
      write(words);
    }
  }
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }
  [[nodiscard]] const std::string& trace() const { return trace_; }

 private:
  Moment now_{};
  SeededRandom random_;
  std::uint64_t asked_ = 0;
  std::map<std::pair<Moment, std::uint64_t>, std::function<void()>> events_;
  void write(const std::string& line);

  std::uint64_t fingerprint_ = 0;
  bool tracing_ = false;
  std::string trace_;
};

}  // namespace pawl::sim
