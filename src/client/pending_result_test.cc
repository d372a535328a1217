#include "client/pending_result.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

namespace pawl::client {
namespace {

TEST(PendingResult, WaitAfterSetReturnsAtOnce) {
  WakeupGroup wakeups;
  PendingResult<int> result(wakeups, this_thread());
  result.set(7);
  EXPECT_EQ(*result.wait(), 7);
}

// More threads than bits to sleep on, so that some share one. Half of them get their result first.
TEST(PendingResult, OneWakeReachesEveryThreadWithAResult) {
  constexpr int kThreads = 300;
  WakeupGroup wakeups;
  std::deque<PendingResult<int>> results;
  for (std::uint64_t i = 1; i <= kThreads; ++i) results.emplace_back(wakeups, ThreadNumber{i});
  std::vector<int> got(kThreads);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { got[i] = *results[i].wait(); });
  }
  for (const std::size_t half : {0u, 1u}) {
    for (std::size_t i = half; i < kThreads; i += 2) results[i].set(static_cast<int>(i));
    wakeups.wake_marked();
  }
  threads.clear();  // Joins; a thread that was not woken would hang the test.
  for (std::size_t i = 0; i < kThreads; ++i) EXPECT_EQ(got[i], static_cast<int>(i));
}

TEST(ThisThread, IsNeverReused) {
  ThreadNumber first{}, second{};
  std::jthread([&] { first = this_thread(); }).join();
  std::jthread([&] { second = this_thread(); }).join();
  EXPECT_NE(first, second);
  EXPECT_NE(first, kNoThread);
}

}  // namespace
}  // namespace pawl::client
