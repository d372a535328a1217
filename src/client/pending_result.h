// Results, from the I/O thread to the threads that wait for them.
//
//   PendingResult<ReleaseResult> result(driver.wakeups(), this_thread());  // on the waiting stack
//   driver.release(lease, wait, [&](auto released) { result.set(std::move(released)); });
//   return result.wait();  // and on the I/O thread, after set(): wakeups.wake_marked();
//
// With many threads on one connection, waking them is most of the cost of a call. So threads whose
// results arrive together are woken together: they sleep on a few common futexes, each with a bit
// (FUTEX_WAIT_BITSET), and one system call wakes all threads whose bits it names. Threads that
// share a bit, as some of hundreds do, may be woken without a result, and sleep again.
//
// Measured against a std::mutex and std::condition_variable in each result, with 64 threads on one
// client (pawl_bench_load --by client --connections 64; 2 cores that were busy with other work; 9
// runs each): median 20 µs of client CPU per acquire and release against 27 µs, ranges 16–48 and
// 19–37. The rates were too noisy to compare.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "client/holders.h"
#include "pawl/result.h"

namespace pawl::client {

// The number of the calling thread.
[[nodiscard]] ThreadNumber this_thread();

class WakeupGroup {
 public:
  // Where a thread sleeps: a futex, and a bit of its wake mask.
  struct Slot {
    std::size_t futex;
    std::uint32_t bit;
  };
  [[nodiscard]] static Slot slot_of(ThreadNumber thread) {
    return {thread.value / 32 % kFutexes, std::uint32_t{1} << thread.value % 32};
  }

  // Sleeps until `set`, which the I/O thread stores before mark().
  void wait(Slot slot, const std::atomic<bool>& set);
  // The next wake_marked() wakes the threads of this slot. Both are for the I/O thread.
  void mark(Slot slot) {
    futexes_[slot.futex].marked.fetch_or(slot.bit, std::memory_order_relaxed);
  }
  void wake_marked();

 private:
  static constexpr std::size_t kFutexes = 8;
  struct alignas(64) Futex {
    std::atomic<std::uint32_t> wakes = 0;   // The kernel lets a thread sleep only on the newest.
    std::atomic<std::uint32_t> marked = 0;  // bits to wake
  };
  std::array<Futex, kFutexes> futexes_;
};

template <class T>
class PendingResult {
 public:
  PendingResult(WakeupGroup& wakeups, ThreadNumber thread)
      : wakeups_(wakeups), slot_(WakeupGroup::slot_of(thread)) {}
  PendingResult(const PendingResult&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;

  void set(Result<T> result) {
    result_.emplace(std::move(result));
    WakeupGroup& wakeups = wakeups_;
    const WakeupGroup::Slot slot = slot_;
    set_.store(true, std::memory_order_release);  // From here on this object may be gone.
    wakeups.mark(slot);
  }
  Result<T> wait() {
    wakeups_.wait(slot_, set_);
    return *std::move(result_);
  }

 private:
  WakeupGroup& wakeups_;
  const WakeupGroup::Slot slot_;
  std::atomic<bool> set_ = false;
  std::optional<Result<T>> result_;
};

}  // namespace pawl::client
