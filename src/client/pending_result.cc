#include "client/pending_result.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace pawl::client {

ThreadNumber this_thread() {
  static std::atomic<std::uint64_t> last{kNoThread.value};
  thread_local const ThreadNumber mine{++last};
  return mine;
}

void WakeupGroup::wait(Slot slot, const std::atomic<bool>& set) {
  std::atomic<std::uint32_t>& wakes = futexes_[slot.futex].wakes;
  static_assert(sizeof(wakes) == sizeof(std::uint32_t));
  for (;;) {
    // The counter first: after a wake_marked() from here on the kernel refuses to sleep on it.
    const std::uint32_t seen = wakes.load(std::memory_order_acquire);
    if (set.load(std::memory_order_acquire)) return;
    syscall(SYS_futex, &wakes, FUTEX_WAIT_BITSET_PRIVATE, seen, nullptr, nullptr, slot.bit);
  }
}

void WakeupGroup::wake_marked() {
  for (Futex& futex : futexes_) {
    const std::uint32_t marked = futex.marked.exchange(0, std::memory_order_relaxed);
    if (marked == 0) continue;
    futex.wakes.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &futex.wakes, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, marked);
  }
}

}  // namespace pawl::client
