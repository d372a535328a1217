// What the engine counts, for people and for alarms. Plain numbers on the engine's thread: nothing here costs more than an
// increment, nothing decides anything. Whoever wants them takes a copy (Engine::telemetry()); metrics.h turns it into text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.h"
#include "core/outputs.h"
#include "wire/verbs.h"

namespace pawl::server {

// How many of what was observed were at most so much. `Bounds::kUpTo` ascends; the last bucket takes the rest.
template <class Bounds>
struct Histogram {
  std::array<std::uint64_t, Bounds::kUpTo.size() + 1> counts{};
  double sum = 0;

  void observe(double value, std::uint64_t times = 1) {
    const auto bucket = std::lower_bound(Bounds::kUpTo.begin(), Bounds::kUpTo.end(), value);
    counts[static_cast<std::size_t>(bucket - Bounds::kUpTo.begin())] += times;
    sum += value * static_cast<double>(times);
  }
  void observe(Nanos duration, std::uint64_t times = 1) {
    observe(std::chrono::duration<double>(duration).count(), times);
  }
};

// Seconds. From what a commit to memory takes to the longest tenure that anyone would look at in a histogram.
struct Seconds {
  static constexpr std::array kUpTo{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                    0.01,    0.025,  0.05,    0.1,    0.25,  0.5,    1.0,
                                    2.5,     5.0,    10.0,    30.0,   60.0,  300.0,  3600.0};
};
struct Sizes {
  static constexpr std::array kUpTo{1.0,  2.0,   4.0,   8.0,   16.0,   32.0,
                                    64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0};
};
using Durations = Histogram<Seconds>;

enum class AcquireResult : std::uint8_t {
  kGranted,
  kBusy,
  kTimeout,
  kCancelled,
  kSuperseded,
  kLost,
  kRefused
};
inline constexpr std::size_t kAcquireResults = 7;
[[nodiscard]] std::string_view to_text(AcquireResult result);

struct Telemetry {
  struct Command {
    std::uint64_t ok = 0;
    std::uint64_t error = 0;
    Durations duration;
  };
  static constexpr std::size_t kUnknown = wire::kVerbCount;  // The place of commands that do not exist.
  std::array<Command, wire::kVerbCount + 1> commands{};

  std::array<std::uint64_t, kAcquireResults> acquires{};
  Durations acquire;  // of those granted: from receipt to the turn's end, what was queued for included
  Durations wait;     // of it, in the queue
  Durations hold;     // of leases that ended
  Durations margin;   // what a lease had left when it was renewed
  std::uint64_t renewed = 0;
  std::uint64_t not_renewed = 0;
  std::uint64_t heard_after_expiry = 0;
  std::array<std::uint64_t, 4> ended{};  // by core::Ending, from 1
  std::uint64_t tokens = 0;
  std::uint64_t breaks = 0;
  std::uint64_t raises = 0;

  Durations turn;
  Durations commit;
  Histogram<Sizes> batch_size;

  // What the core told. Consecutive events of one lease, one for each of its locks, count once.
  void count(const core::Output& output);
  void count(const core::Outcome& acquired);
};

}  // namespace pawl::server
