// What the engine counts, for people and for alarms. Plain numbers on the engine's thread: nothing
// here costs more than an increment, nothing decides anything. Readers take a copy
// (Engine::telemetry()); metrics.h turns it into text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "core/outputs.h"

namespace pawl::server {

// Counts observed values in buckets. `Bounds::kUpTo` ascends, in whole units; the last bucket takes
// the rest. Most values are small, so the bucket is looked for from below.
template <class Bounds>
struct Histogram {
  std::array<std::uint64_t, Bounds::kUpTo.size() + 1> counts{};
  double sum = 0;  // in units

  void observe(std::int64_t value, std::uint64_t times = 1) {
    std::size_t bucket = 0;
    while (bucket < Bounds::kUpTo.size() && value > Bounds::kUpTo[bucket]) ++bucket;
    counts[bucket] += times;
    sum += static_cast<double>(value) * static_cast<double>(times);
  }
  void observe(Nanos duration, std::uint64_t times = 1) { observe(duration.count(), times); }
};

// Nanoseconds, shown as seconds. From what a commit to memory takes to the longest tenure that
// anyone would look at in a histogram.
struct Seconds {
  static constexpr double kPerUnit = 1e9;
  static constexpr std::int64_t kMicro = 1000, kMilli = 1000 * kMicro, kSecond = 1000 * kMilli;
  static constexpr std::array<std::int64_t, 21> kUpTo{
      50 * kMicro,  100 * kMicro,  250 * kMicro,    500 * kMicro, kMilli,       5 * kMilli / 2,
      5 * kMilli,   10 * kMilli,   25 * kMilli,     50 * kMilli,  100 * kMilli, 250 * kMilli,
      500 * kMilli, kSecond,       5 * kSecond / 2, 5 * kSecond,  10 * kSecond, 30 * kSecond,
      60 * kSecond, 300 * kSecond, 3600 * kSecond};
};
struct Sizes {
  static constexpr double kPerUnit = 1;
  static constexpr std::array<std::int64_t, 12> kUpTo{1,  2,   4,   8,   16,   32,
                                                      64, 128, 256, 512, 1024, 4096};
};
// Parts of a whole: thousandths, shown as 0 to 1.
struct Ratio {
  static constexpr std::int64_t kWhole = 1000;
  static constexpr double kPerUnit = kWhole;
  static constexpr std::array<std::int64_t, 11> kUpTo{10,  50,  100, 200, 300, 400,
                                                      500, 600, 700, 850, 1000};
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

// Why a connection that had not authenticated was closed.
enum class Unwanted : std::uint8_t {
  kLate,       // its time to authenticate, or for its handshake, was over
  kDisplaced,  // there were too many, and it was chosen to make room
};

struct Telemetry {
  Telemetry();

  struct Command {
    std::uint64_t ok = 0;
    std::uint64_t error = 0;
    Durations duration;
  };
  // One for each verb, in the order of the table, and the last one for commands that do not exist.
  std::vector<Command> commands;
  [[nodiscard]] std::size_t unknown() const { return commands.size() - 1; }

  std::array<std::uint64_t, kAcquireResults> acquires{};
  Durations acquire;  // of those granted: from receipt to the turn's end, the queue included
  Durations wait;     // of it, in the queue
  Durations hold;     // of leases that ended
  Durations margin;   // what a lease had left when it was renewed
  Histogram<Ratio> margin_ratio;  // the same, as a part of what the renewal gave it
  std::uint64_t renewed = 0;
  std::uint64_t not_renewed = 0;
  std::uint64_t used_after_expiry = 0;
  std::array<std::uint64_t, 4> ended{};  // by core::Ending, from 1
  std::uint64_t tokens = 0;
  std::uint64_t breaks = 0;
  std::array<std::uint64_t, 3> asks{};  // by core::AskDone::State
  std::uint64_t raises = 0;

  // When the last complete backup was asked for, so how fresh it is; 0: none in this process.
  UnixMs last_backup;
  std::uint64_t store_damage_found = 0;     // times
  std::uint64_t store_damage_repaired = 0;  // of these

  std::uint64_t role_changes = 0;  // became active, or no longer is

  std::uint64_t turns = 0;
  std::uint64_t batches = 0;
  std::uint64_t commands_served = 0;
  // How often a connection with input had to wait for the next turn.
  std::uint64_t postponed = 0;
  std::uint64_t connections = 0;  // accepted, ever
  std::uint64_t connections_refused = 0;
  std::uint64_t connections_cut = 0;  // for reading too slowly
  std::uint64_t newcomers_late = 0;
  std::uint64_t newcomers_displaced = 0;
  void count_unwanted(Unwanted why) {
    ++(why == Unwanted::kLate ? newcomers_late : newcomers_displaced);
  }
  std::uint64_t wrong_secrets = 0;
  // Of the certificate that new connections are shown, in seconds since 1970; nothing without TLS.
  std::optional<std::int64_t> certificate_expiry;

  Durations turn;
  Durations commit;  // of each batch: from handing it to the store until it was durable
  Histogram<Sizes> batch_size;

  // The events of a batch. Consecutive events of one lease, one for each of its locks, count once.
  void count(const core::Output& output);
  void count(const core::Outcome& acquired);
  // An acquire that was answered before it reached the core.
  void count_refused() { ++acquires[static_cast<std::size_t>(AcquireResult::kRefused)]; }
};

}  // namespace pawl::server
