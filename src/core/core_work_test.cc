// What inputs and reads cost, counted in nodes that were visited.
#include "core/core.h"

#include <gtest/gtest.h>

#include <string>

namespace pawl::core {
namespace {

using namespace std::chrono_literals;

class CoreWorkTest : public testing::Test {
 protected:
  CoreWorkTest() {
    Batch batch;
    EXPECT_TRUE(core.loaded(Token{1'000'000'000}, now));
  }
  void acquire(const std::string& request, std::string_view lock, Millis wait,
               Mode mode = Mode::kExclusive) {
    Acquire input{WaiterId{++waiters}, {}, LeaseId{1, waiters}};
    input.spec.locks.push_back(lock);
    input.spec.terms.mode = mode;
    input.spec.terms.ttl = 10s;
    input.spec.wait = wait;
    input.spec.async = wait > Millis(0);
    input.spec.request = request;
    core.apply(input, now);
  }
  static std::string request(int number) { return "request-" + std::to_string(1'000'000 + number); }
  std::uint64_t last_position() {
    return std::get<Queued>(core.output().replies.back().outcome).position;
  }

  Core core;
  Now now{};
  std::uint64_t waiters = 0;
};

// H3: it walked the queue, 100,000 × 50,000 places.
TEST_F(CoreWorkTest, WaitersThatAllAskAgainVisitFewPlacesEach) {
  constexpr int kWaiters = 100'000;
  acquire("", "a", 0s);
  for (int i = 0; i < kWaiters; ++i) acquire(request(i), "a", 60s);
  core.output().clear();
  const std::uint64_t before = core.work();
  for (int i = 0; i < kWaiters; ++i) {
    acquire(request(i), "a", 60s);
    ASSERT_EQ(last_position(), static_cast<std::uint64_t>(i + 1));
    core.output().clear();
  }
  EXPECT_LE(core.work() - before, kWaiters * std::uint64_t{20});
}

TEST_F(CoreWorkTest, PositionsInALongQueueAreRightWhileOthersLeave) {
  constexpr int kWaiters = 1000;
  acquire("", "a", 0s);
  for (int i = 0; i < kWaiters; ++i) acquire(request(i), "a", 60s);
  acquire(request(kWaiters - 1), "a", 60s);
  EXPECT_EQ(last_position(), 1000U);
  // Every second one leaves, from the front; then more come.
  for (int i = 0; i < kWaiters; i += 2)
    core.apply(CancelRequest{WaiterId{++waiters}, request(i)}, now);
  for (int i = 1; i < kWaiters; i += 2) {
    acquire(request(i), "a", 60s);
    ASSERT_EQ(last_position(), static_cast<std::uint64_t>(i / 2 + 1));
  }
  for (int i = kWaiters; i < 3 * kWaiters; ++i) acquire(request(i), "a", 60s);
  for (int i = kWaiters; i < 3 * kWaiters; ++i) {
    acquire(request(i), "a", 60s);
    ASSERT_EQ(last_position(), static_cast<std::uint64_t>(i - kWaiters / 2 + 1));
  }
}

TEST_F(CoreWorkTest, InspectVisitsOnlyTheHoldersItShows) {
  for (int i = 0; i < 5000; ++i) acquire("", "a", 0s, Mode::kShared);
  const std::uint64_t before = core.work();
  const LockView view = core.inspect("a", now);
  EXPECT_EQ(view.holder_count, 5000U);
  EXPECT_EQ(view.holders.size(), limits::kHoldersShown);
  EXPECT_EQ(view.token, Token{1'000'005'000});
  EXPECT_LE(core.work() - before, 2 * limits::kHoldersShown);
}

TEST_F(CoreWorkTest, HoldersArePagedByToken) {
  for (int i = 0; i < 40; ++i) acquire("", "a", 0s, Mode::kShared);
  Token after;
  std::size_t seen = 0;
  for (;;) {
    const LockView view = core.inspect("a", now, {.count = 15, .after = after});
    if (view.holders.empty()) break;
    for (const HolderView& holder : view.holders) {
      EXPECT_GT(holder.token, after);
      after = holder.token;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 40U);
}

TEST_F(CoreWorkTest, ReadsCountWhatTheyVisit) {
  for (int i = 0; i < 100; ++i) acquire("", "lock/" + std::to_string(i), 0s);
  const std::uint64_t before = core.work();
  (void)core.list("none/", 0, 1, now);
  EXPECT_GE(core.work() - before, 100U);
}

}  // namespace
}  // namespace pawl::core
