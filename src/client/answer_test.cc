#include "client/answer.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

namespace pawl::client {
namespace {

TEST(Answer, SetBeforeAnybodyWaitsIsThereAtOnce) {
  Waking waking;
  Answer<int> answer(waking, this_thread());
  answer.set(7);
  EXPECT_EQ(*answer.wait(), 7);
}

// More threads than there are bits to sleep on, so some share theirs; answered one half after the
// other.
TEST(Answer, OneWakeReachesEverybodyAnsweredBeforeIt) {
  constexpr int kThreads = 300;
  Waking waking;
  std::deque<Answer<int>> answers;
  for (std::uint64_t i = 1; i <= kThreads; ++i) answers.emplace_back(waking, ThreadNumber{i});
  std::vector<int> got(kThreads);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { got[i] = *answers[i].wait(); });
  }
  for (const std::size_t half : {0u, 1u}) {
    for (std::size_t i = half; i < kThreads; i += 2) answers[i].set(static_cast<int>(i));
    waking.wake();
  }
  threads.clear();  // Joins: who was not woken would keep us here.
  for (std::size_t i = 0; i < kThreads; ++i) EXPECT_EQ(got[i], static_cast<int>(i));
}

TEST(ThisThread, IsNeverTheNumberOfAThreadThatHasEnded) {
  ThreadNumber first{}, second{};
  std::jthread([&] { first = this_thread(); }).join();
  std::jthread([&] { second = this_thread(); }).join();
  EXPECT_NE(first, second);
  EXPECT_NE(first, kNoThread);
}

}  // namespace
}  // namespace pawl::client
