// Every byte has an owner and a limit: leases, waiters and the memory they take, in all and for each
// user (G10).
#include "core/testlib/core_fixture.h"

namespace pawl::core {
namespace {

constexpr AccountId kAlice = 1, kBob = 2;

class CoreLimitsTest : public CoreTest {
 protected:
  WaiterId asks_as(AccountId account, Spec spec, Millis wait = 0s) {
    const WaiterId waiter{next_waiter_++};
    spec.wait = wait;
    pending_.asked(waiter);
    step([&] {
      core_->apply(Acquire{waiter, spec.view(), LeaseId{9, waiter.value}, account}, now_);
    });
    commit();
    return waiter;
  }
  Refused refusal(WaiterId waiter) const {
    const Outcome outcome = answer(waiter);
    EXPECT_TRUE(std::holds_alternative<Refused>(outcome)) << said(waiter);
    return std::holds_alternative<Refused>(outcome) ? std::get<Refused>(outcome) : Refused{};
  }
  void limit_to(Quota in_all, Quota per_user) {
    options_.in_all = in_all;
    options_.per_user = per_user;
    restart();
  }

  std::uint64_t next_waiter_ = 1'000'000;
};

TEST_F(CoreLimitsTest, AUserAtItsLimitOfLeasesDoesNotTouchTheOthers) {
  limit_to({.leases = 10}, {.leases = 2});
  const Granted first = grant_of(asks_as(kAlice, exclusive({"a"})));
  EXPECT_TRUE(is_granted(asks_as(kAlice, exclusive({"b"}))));
  const Refused refused = refusal(asks_as(kAlice, exclusive({"c"})));
  EXPECT_EQ(refused.why, Refused::Why::kLeasesFull);
  EXPECT_TRUE(refused.per_user);
  EXPECT_EQ(refused.use, 2U);
  EXPECT_EQ(refused.limit, 2U);
  EXPECT_TRUE(is_granted(asks_as(kBob, exclusive({"c"}))));
  // Renewals and releases are never refused, and a release makes room.
  EXPECT_TRUE(std::holds_alternative<Renewed>(renews(first.lease)));
  EXPECT_TRUE(releases(first.lease));
  EXPECT_TRUE(is_granted(asks_as(kAlice, exclusive({"d"}))));
}

TEST_F(CoreLimitsTest, TheTotalHoldsForThoseWithoutAUserToo) {
  limit_to({.leases = 2}, {.leases = 1});
  EXPECT_TRUE(is_granted(asks_as(0, exclusive({"a"}))));
  EXPECT_TRUE(is_granted(asks_as(0, exclusive({"b"})))) << "without users only the total holds";
  EXPECT_FALSE(refusal(asks_as(0, exclusive({"c"}))).per_user);
}

TEST_F(CoreLimitsTest, AWaiterHasThePlaceOfItsLeaseReserved) {
  limit_to({.leases = 3}, {.leases = 2});
  const Granted holder = grant_of(asks_as(kBob, exclusive({"a"})));
  const WaiterId waiter = asks_as(kAlice, exclusive({"a"}), 60s);
  EXPECT_TRUE(is_granted(asks_as(kAlice, exclusive({"b"}))));
  EXPECT_EQ(refusal(asks_as(kAlice, exclusive({"c"}))).why, Refused::Why::kLeasesFull);
  releases(holder.lease);
  EXPECT_TRUE(is_granted(waiter)) << "a grant is never refused for lack of room";
}

TEST_F(CoreLimitsTest, WaitersAreLimitedForEachUser) {
  limit_to({}, {.waiters = 1});
  takes(exclusive({"a"}));
  const WaiterId first = asks_as(kAlice, exclusive({"a"}), 60s);
  EXPECT_EQ(refusal(asks_as(kAlice, exclusive({"a"}), 60s)).why, Refused::Why::kWaitersFull);
  EXPECT_FALSE(is_answered(asks_as(kBob, exclusive({"a"}), 60s)));
  hangs_up(first);
  EXPECT_FALSE(is_answered(asks_as(kAlice, exclusive({"a"}), 60s)));
}

TEST_F(CoreLimitsTest, LongNamesCountByTheirBytes) {
  limit_to({.bytes = 2000}, {});
  EXPECT_TRUE(is_granted(asks_as(0, exclusive({std::string(500, 'a'), std::string(500, 'b')}))));
  const Refused refused = refusal(asks_as(0, exclusive({std::string(500, 'c')})));
  EXPECT_EQ(refused.why, Refused::Why::kLeaseBytesFull);
  EXPECT_EQ(refused.limit, 2000U);
  EXPECT_TRUE(is_granted(asks_as(0, exclusive({"short"}))));
}

TEST_F(CoreLimitsTest, ARetryIsNotRefused) {
  limit_to({.leases = 1}, {});
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const Granted first = grant_of(asks_as(0, spec));
  EXPECT_EQ(grant_of(asks_as(0, spec)).token, first.token);
}

TEST_F(CoreLimitsTest, WhateverTheLimitsLeasesFromBeforeARestartAreLoaded) {
  for (const char* lock : {"a", "b", "c"}) takes(exclusive({lock}));
  limit_to({.leases = 1}, {.leases = 1});
  EXPECT_EQ(core_->totals().leases, 3U);
  EXPECT_EQ(refusal(asks_as(kAlice, exclusive({"d"}))).use, 3U);
}

TEST_F(CoreLimitsTest, ALoadedLeaseCountsAsItsHoldersFromItsFirstRenewalOn) {
  const Granted lease = takes(exclusive({"a"}));
  limit_to({}, {.leases = 1});
  EXPECT_EQ(core_->accounts().greatest().leases, 0U);
  (void)outcome_of([&](WaiterId waiter) {
    core_->apply(Renew{waiter, lease.lease, kAlice}, now_);
  });
  EXPECT_EQ(core_->accounts().greatest().leases, 1U);
  EXPECT_EQ(refusal(asks_as(kAlice, exclusive({"b"}))).why, Refused::Why::kLeasesFull);
}

TEST_F(CoreLimitsTest, NothingIsCountedOnceAllIsOver) {
  Spec delayed = exclusive({"d", "e"}, 1s);
  delayed.delay = 1s;
  delayed.request = kRequest;
  asks_as(kAlice, delayed);
  asks_as(kAlice, exclusive({"a"}, 1s));
  asks_as(kBob, exclusive({"a"}, 1s), 500ms);
  asks_as(kBob, shared("s", 1s));
  for (int i = 0; i < 10; ++i) {
    after(1s);
    commit();
  }
  EXPECT_EQ(core_->accounts().total().places(), 0U);
  EXPECT_EQ(core_->accounts().total().bytes, 0U);
  EXPECT_EQ(core_->accounts().greatest().bytes, 0U);
}

// H4: 6,300 cycles took 873 MB with no live lease.
TEST_F(CoreLimitsTest, HistoryIsBoundedInBytes) {
  options_.history_bytes = 50'000;
  restart();
  for (int i = 0; i < 50; ++i) {
    std::vector<std::string> names;
    for (int lock = 0; lock < 8; ++lock) names.push_back(std::string(400, char('a' + lock)));
    releases(takes(exclusive(names)).lease);
  }
  EXPECT_LE(core_->history_bytes(), 50'000U);
  EXPECT_GE(core_->history(std::string(400, 'a'), 100).size(), 8U);
  EXPECT_EQ(core_->history(std::string(400, 'h'), 1).at(0).locks.size(), 8U);
}

}  // namespace
}  // namespace pawl::core
