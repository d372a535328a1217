#include "bench/measure.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace pawl::bench {
namespace {

Nanos read_clock(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return {};
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

}  // namespace

std::uint64_t Histogram::bucket_end(std::size_t bucket) {
  if (bucket < kFine) return bucket;
  const std::size_t shift = bucket / kFine - 1;
  return ((kFine + bucket % kFine + 1) << shift) - 1;
}

Nanos Histogram::quantile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts_.size() && total_ > 0; ++bucket) {
    seen += counts_[bucket];
    if (seen >= wanted) return Nanos(bucket_end(bucket));
  }
  return {};
}

void Histogram::add_all(const Histogram& other) {
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket)
    counts_[bucket] += other.counts_[bucket];
  total_ += other.total_;
}

CpuTimes operator-(const CpuTimes& after, const CpuTimes& before) {
  return {after.self - before.self, after.server - before.server, after.machine - before.machine,
          after.stolen - before.stolen};
}

Nanos monotonic_now() {
  return read_clock(CLOCK_MONOTONIC);
}

CpuTimes cpu_times(pid_t server) {
  CpuTimes times;
  times.self = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  clockid_t clock = 0;
  if (server != 0 && clock_getcpuclockid(server, &clock) == 0) times.server = read_clock(clock);
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0,
                     steal = 0;
  std::FILE* stat = std::fopen("/proc/stat", "re");
  if (stat == nullptr) return times;
  if (std::fscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                  &iowait, &irq, &softirq, &steal) == 8) {
    const Nanos tick = Nanos(std::chrono::seconds(1)) / sysconf(_SC_CLK_TCK);
    times.machine = tick * static_cast<Nanos::rep>(user + nice + system + irq + softirq);
    times.stolen = tick * static_cast<Nanos::rep>(steal);
  }
  std::fclose(stat);
  return times;
}

}  // namespace pawl::bench
