// Answers, from the I/O thread to the threads that wait for them.
//
//   Answer<Release> answer(driver.waking(), this_thread());         // on the waiting thread's stack
//   driver.release(…, [&](Result<Release> r) { answer.set(std::move(r)); });    // exactly once
//   return answer.wait();                                           // and, on the I/O thread: waking.wake();
//
// With many threads on one connection, waking them is most of what a call costs. So those that are
// answered together are woken together: they sleep on a few common words, each with a bit of its
// own (futex(2), FUTEX_WAIT_BITSET), and one system call wakes all whose bits it names. Who shares
// a bit with another, as some of hundreds of threads do, may be woken for nothing, and looks again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "client/holders.h"
#include "pawl/result.h"

namespace pawl::client {

// Of the calling thread.
[[nodiscard]] ThreadNumber this_thread();

class Waking {
 public:
  // Where a thread sleeps.
  struct Place {
    std::size_t word;
    std::uint32_t bit;
  };
  [[nodiscard]] static Place place(ThreadNumber thread) {
    return {thread.value / 32 % kWords, std::uint32_t{1} << thread.value % 32};
  }

  // The waiting thread: sleeps until `set`, which the I/O thread stores before note().
  void sleep(Place at, const std::atomic<bool>& set);
  // Who sleeps there is to be woken by the next wake(), which is the I/O thread's to call.
  void note(Place at) { words_[at.word].noted.fetch_or(at.bit, std::memory_order_relaxed); }
  void wake();

 private:
  static constexpr std::size_t kWords = 8;
  struct alignas(64) Word {
    std::atomic<std::uint32_t> wakes = 0;  // who saw the newest figure may sleep
    std::atomic<std::uint32_t> noted = 0;  // whom to wake
  };
  std::array<Word, kWords> words_;
};

template <class T>
class Answer {
 public:
  Answer(Waking& waking, ThreadNumber thread) : waking_(waking), place_(Waking::place(thread)) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void set(Result<T> result) {
    result_.emplace(std::move(result));
    Waking& waking = waking_;
    const Waking::Place place = place_;
    set_.store(true, std::memory_order_release);  // From here on this object may be gone.
    waking.note(place);
  }
  Result<T> wait() {
    waking_.sleep(place_, set_);
    return *std::move(result_);
  }

 private:
  Waking& waking_;
  const Waking::Place place_;
  std::atomic<bool> set_ = false;
  std::optional<Result<T>> result_;
};

}  // namespace pawl::client
