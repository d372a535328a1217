// Instruments of the benchmark: a latency histogram that never allocates, and CPU clocks of this
// process, of the server and of the whole machine.
#pragma once

#include <sys/types.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

#include "base/types.h"

namespace pawl::bench {

// Counts durations in buckets that are 1/64 of a power of two wide: quantiles are good to 1.6 %.
class Histogram {
 public:
  void add(Nanos duration) {
    ++counts_[bucket(static_cast<std::uint64_t>(duration.count()))], ++total_;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  // The duration that `share` (0 … 1) of the samples do not exceed; 0 without samples.
  [[nodiscard]] Nanos quantile(double share) const;
  void add_all(const Histogram& other);

 private:
  static constexpr unsigned kFineBits = 6;
  static constexpr std::uint64_t kFine = std::uint64_t{1} << kFineBits;

  static std::size_t bucket(std::uint64_t value) {
    if (value < kFine) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kFineBits;
    return static_cast<std::size_t>((shift + 1) * kFine + ((value >> shift) - kFine));
  }
  static std::uint64_t bucket_end(std::size_t bucket);

  std::array<std::uint64_t, (64 - kFineBits + 1) * kFine> counts_{};
  std::uint64_t total_ = 0;
};

// CPU time used so far. Fields that cannot be read stay 0.
struct CpuTimes {
  Nanos self{};    // this process
  Nanos server{};  // the process under test
  // The whole machine, kernel threads and interrupts included; in steps of 10 ms.
  Nanos machine{};
  Nanos stolen{};  // what the hypervisor gave to others
};

[[nodiscard]] CpuTimes operator-(const CpuTimes& after, const CpuTimes& before);

// `server` may be 0: then its time stays 0.
[[nodiscard]] CpuTimes cpu_times(pid_t server);

Nanos monotonic_now();

}  // namespace pawl::bench
