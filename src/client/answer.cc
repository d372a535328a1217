#include "client/answer.h"

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

void Waking::sleep(Place at, const std::atomic<bool>& set) {
  std::atomic<std::uint32_t>& wakes = words_[at.word].wakes;
  static_assert(sizeof(wakes) == sizeof(std::uint32_t));
  for (;;) {
    // The figure first: a wake() after this look makes the kernel refuse to sleep on it.
    const std::uint32_t seen = wakes.load(std::memory_order_acquire);
    if (set.load(std::memory_order_acquire)) return;
    syscall(SYS_futex, &wakes, FUTEX_WAIT_BITSET_PRIVATE, seen, nullptr, nullptr, at.bit);
  }
}

void Waking::wake() {
  for (Word& word : words_) {
    const std::uint32_t noted = word.noted.exchange(0, std::memory_order_relaxed);
    if (noted == 0) continue;
    word.wakes.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &word.wakes, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, noted);
  }
}

}  // namespace pawl::client
