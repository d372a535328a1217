// One answer, from the thread that has it to the one thread that waits for it.
//
//   Answer<Release> answer;                                        // on the waiting thread's stack
//   driver.release(…, [&](Result<Release> r) { answer.set(std::move(r)); });    // exactly once
//   return answer.wait();
//
// A futex, not a condition variable: with many threads waiting for one connection, waking them is most of what a call
// costs, and this is the least that wakes one.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "pawl/result.h"

namespace pawl::client {

template <class T>
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void set(Result<T> result) {
    result_.emplace(std::move(result));
    auto* const word = &set_;
    if (set_.exchange(kSet, std::memory_order_acq_rel) != kAwaited) return;
    // The waiter may be gone by now, and this object with it. The kernel only compares the address; whoever else
    // sleeps there looks again, as after any wake-up.
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  Result<T> wait() {
    std::uint32_t seen = kOpen;
    if (set_.compare_exchange_strong(seen, kAwaited, std::memory_order_acquire)) seen = kAwaited;
    while (seen != kSet) {
      syscall(SYS_futex, &set_, FUTEX_WAIT_PRIVATE, kAwaited, nullptr, nullptr, 0);
      seen = set_.load(std::memory_order_acquire);
    }
    return *std::move(result_);
  }

 private:
  static constexpr std::uint32_t kOpen = 0, kAwaited = 1, kSet = 2;
  std::atomic<std::uint32_t> set_{kOpen};
  static_assert(sizeof(set_) == sizeof(std::uint32_t));
  std::optional<Result<T>> result_;
};

}  // namespace pawl::client
