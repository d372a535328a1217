// Batches of limited size: what ends or is handed on by itself is spread over as many as it takes.
#include "core/core.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pawl::core {
namespace {

using namespace std::chrono_literals;

class CoreBatchesTest : public testing::Test {
 protected:
  static constexpr BatchLimits kLimits{.bytes = 64 * 1024, .operations = 100};

  CoreBatchesTest() {
    core.limit_batches(kLimits);
    EXPECT_TRUE(core.loaded(Token{0}, now));
  }
  LeaseId acquire(std::string_view lock, Millis wait, Mode mode = Mode::kExclusive,
                  Millis max_hold = Millis(0)) {
    Acquire input{WaiterId{++waiters}, {}, LeaseId{1, waiters}};
    input.spec.locks.push_back(lock);
    input.spec.terms.mode = mode;
    input.spec.terms.ttl = 10s;
    input.spec.terms.max_hold = max_hold;
    input.spec.wait = wait;
    core.apply(input, now);
    return input.candidate;
  }
  // One batch, durable at once; false when there is nothing to take.
  bool commit() {
    const BatchId id = core.take_batch(batch);
    if (id.value == 0) return false;
    EXPECT_LE(batch.bytes().size(), kLimits.bytes);
    EXPECT_LE(batch.operations(), kLimits.operations);
    core.durable(id, now);
    return true;
  }
  // Turns in which nobody asks for anything, until nothing is left to do. Returns the batches.
  int settle() {
    int batches = 0;
    for (core.tick(now); commit(); core.tick(now)) ++batches;
    return batches;
  }
  std::vector<Token> granted() {
    std::vector<Token> tokens;
    for (const Reply& reply : core.output().replies) {
      if (const auto* grant = std::get_if<Granted>(&reply.outcome)) tokens.push_back(grant->token);
    }
    return tokens;
  }

  Core core;
  Now now{};
  Batch batch;
  std::uint64_t waiters = 0;
};

TEST_F(CoreBatchesTest, LeasesThatAllExpireAtOnceTakeSeveralBatches) {
  constexpr int kLeases = 1000;
  for (int i = 0; i < kLeases; ++i) {
    acquire("lock-" + std::to_string(i), 0s);
    commit();
  }
  now.tick += 11s;
  EXPECT_GE(settle(), kLeases / 100);
  EXPECT_EQ(core.totals().leases, 0U);
}

TEST_F(CoreBatchesTest, WaitersThatAreAllGrantedAtOnceTakeSeveralBatchesInOrder) {
  constexpr int kReaders = 1000;
  const LeaseId writer = acquire("a", 0s);
  commit();
  for (int i = 0; i < kReaders; ++i) acquire("a", 60s, Mode::kShared);
  core.output().clear();
  core.apply(Release{WaiterId{UINT64_MAX}, writer}, now);
  EXPECT_LT(granted().size(), 100U);
  EXPECT_LE(core.next_deadline(), now.tick) << "there is more to grant";
  acquire("a", 0s, Mode::kShared);
  EXPECT_TRUE(std::holds_alternative<NotObtained>(core.output().replies.back().outcome))
      << "nobody passes those who wait for a batch with room";
  commit();
  settle();
  const std::vector<Token> tokens = granted();
  EXPECT_EQ(tokens.size(), static_cast<std::size_t>(kReaders));
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
  EXPECT_EQ(core.totals().waiters, 0U);
}

TEST_F(CoreBatchesTest, AWaiterThatLeavesAFullBatchIsNotGranted) {
  const LeaseId writer = acquire("a", 0s);
  commit();
  for (int i = 0; i < 300; ++i) acquire("a", 60s, Mode::kShared);
  const WaiterId last{waiters};
  core.apply(Release{WaiterId{UINT64_MAX}, writer}, now);
  core.output().clear();
  core.apply(Cancel{last}, now);
  commit();
  settle();
  EXPECT_EQ(core.totals().waiters, 0U);
  for (const Reply& reply : core.output().replies) EXPECT_NE(reply.waiter, last);
}

TEST_F(CoreBatchesTest, ARenewalPastItsCapNeedsNoRoomInTheBatch) {
  const LeaseId capped = acquire("capped", 0s, Mode::kExclusive, 5s);
  commit();
  now.tick += 6s;
  for (int i = 0; !core.batch_full(); ++i) acquire("lock-" + std::to_string(i), 0s);
  core.output().clear();
  for (int i = 0; i < 50; ++i) core.apply(Renew{WaiterId{UINT64_MAX}, capped}, now);
  for (const Reply& reply : core.output().replies)
    EXPECT_TRUE(std::holds_alternative<Lost>(reply.outcome));
  EXPECT_TRUE(commit());
  settle();
  EXPECT_EQ(core.inspect("capped", now).holder_count, 0U);
}

}  // namespace
}  // namespace pawl::core
