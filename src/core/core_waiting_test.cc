// Who gets a lock, and in which order: request ids, queues, several locks at once, readers and
// limits.
#include "core/testlib/core_fixture.h"

namespace pawl::core {
namespace {

// --- Request ids ---------------------------------------------------------------------------------

TEST_F(CoreTest, ARetryGetsTheSameGrantAndNoSecondPlace) {  // Hard case 2, the core's part.
  const Granted blocker = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId first = waits(spec);
  pass(3s);
  releases(blocker.lease);
  commit();
  pass(1s);
  const WaiterId second = asks(spec);
  EXPECT_EQ(said(second), said(first)) << "the recorded figures, waited_ms too";
  EXPECT_EQ(core_->totals().leases, 1U);
}

TEST_F(CoreTest, ARetryAfterARestartGetsTheSameGrant) {
  Spec spec = limit(3, "a");
  spec.request = kRequest;
  const std::string first = describe(Outcome(takes(spec)));
  restart();
  EXPECT_EQ(said(asks(spec)), first);
}

TEST_F(CoreTest, ARetryOfAGrantThatWasNotDurableIsANewRequestAfterTheRestart) {
  Spec spec = exclusive({"a"});
  asks_again(spec);
  submit();
  restart();
  EXPECT_TRUE(is_granted(asks_again(spec)));
}

TEST_F(CoreTest, ARequestReplayedAfterItsEndIsLostForAMinuteThenNew) {  // Hard case 4.
  const WaiterId holder = asks_again(exclusive({"a"}));
  commit();
  releases(grant_of(holder).lease);
  commit();
  EXPECT_EQ(said(asks_again(exclusive({"a"}))), "lost released token 1");
  after(30s);
  EXPECT_EQ(said(asks_again(exclusive({"a"}))), "lost released token 1");
  EXPECT_EQ(state("a"), LockState::kFree);
  after(60s);
  EXPECT_EQ(grant_of(asks_again(exclusive({"a"}))).token, Token{2});
}

TEST_F(CoreTest, ARetryAfterTheEndIsAnsweredWithTheEnding) {
  Spec spec = exclusive({"a"}, 1s);
  asks_again(spec);
  commit();
  after(1s);
  EXPECT_EQ(said(asks_again(spec)), "lost expired token 1");
  EXPECT_NE(replies_[0].after, BatchId{});
}

TEST_F(CoreTest, NoMoreEndedRequestsAreRememberedThanAllowed) {
  options_.requests_remembered = 3;
  restart();
  for (int i = 0; i < 5; ++i) {
    const WaiterId holder = asks_again(exclusive({"a"}), kRequest + std::to_string(i));
    releases(grant_of(holder).lease);
  }
  EXPECT_EQ(said(asks_again(exclusive({"a"}), kRequest + "2")), "lost released token 3");
  EXPECT_TRUE(is_granted(asks_again(exclusive({"a"}), kRequest + "1")))
      << "the oldest were forgotten";
}

TEST_F(CoreTest, TheSameRequestForSomethingElseIsAConflict) {  // Hard case 5.
  Spec spec = exclusive({"a", "b"});
  spec.request = kRequest;
  const WaiterId holder = asks(spec);
  commit();
  const auto conflicts = [&](const Spec& other) {
    return said(asks_again(other)) == "refused: conflict";
  };
  const auto all_conflict = [&] {
    EXPECT_TRUE(conflicts(exclusive({"a"})));
    EXPECT_TRUE(conflicts(exclusive({"a", "c"})));
    EXPECT_TRUE(conflicts(exclusive({"a", "b", "c"})));
    EXPECT_TRUE(conflicts(exclusive({"a", "b"}, 11s)));
    EXPECT_TRUE(conflicts(shared("a")));
    EXPECT_TRUE(conflicts(limit(2, "a")));
  };
  all_conflict();
  Spec same = exclusive({"b", "a"});  // The set counts, not its order; nor do these:
  same.wait = 5s;
  same.owner = "another";
  same.delay = 1s;
  same.max_hold = 20s;
  same.meta = {{"k", "v"}};
  EXPECT_EQ(said(asks_again(same)), said(holder));
  restart();
  all_conflict();
  EXPECT_EQ(grant_of(asks_again(same)).token, Token{1});
  releases(LeaseId{7, holder.value});
  all_conflict();
}

TEST_F(CoreTest, AnotherLimitIsAnotherRequest) {  // Hard case 5.
  asks_again(limit(2, "a"));
  EXPECT_EQ(said(asks_again(limit(3, "a"))), "refused: conflict");
  EXPECT_EQ(said(asks_again(exclusive({"a"}))), "refused: conflict");
  EXPECT_TRUE(is_granted(asks_again(limit(2, "a"))));
}

TEST_F(CoreTest, ARequestIsRememberedWhileItWaitsHoldsAndForAMinuteAfter) {
  EXPECT_FALSE(core_->remembers(kRequest));
  const Granted blocker = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId waiting = waits(spec);
  EXPECT_TRUE(core_->remembers(kRequest));
  releases(blocker.lease);
  EXPECT_TRUE(core_->remembers(kRequest));
  releases(grant_of(waiting).lease);
  after(59s);
  EXPECT_TRUE(core_->remembers(kRequest));
  after(1s);
  EXPECT_FALSE(core_->remembers(kRequest));
}

TEST_F(CoreTest, AConflictLeavesTheWaitAlone) {
  const Granted blocker = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId waiting = waits(spec);
  EXPECT_EQ(said(asks_again(exclusive({"a"}, 11s))), "refused: conflict");
  EXPECT_FALSE(is_answered(waiting));
  releases(blocker.lease);
  EXPECT_TRUE(is_granted(waiting));
}

TEST_F(CoreTest, ARetryWhileQueuedKeepsItsPlaceAndTheNewestOwnsTheWait) {  // Hard cases 4 and 20.
  const Granted blocker = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId old_connection = waits(spec);
  const WaiterId behind = waits(exclusive({"a"}));
  pass(1s);
  spec.async = true;
  const WaiterId new_connection = waits(spec);
  EXPECT_EQ(said(old_connection), "not obtained: superseded");
  EXPECT_EQ(said(new_connection), "queued at 1");
  hangs_up(old_connection);  // Too late to matter.
  pass(1s);
  releases(blocker.lease);
  EXPECT_EQ(grant_of(new_connection).waited, 2s) << "counted from the receipt that queued it";
  EXPECT_FALSE(is_answered(behind));
}

TEST_F(CoreTest, ARetryThatDoesNotWantToWaitGivesUpThePlace) {
  const Granted blocker = takes(shared("a"));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId waiting = waits(spec);
  const WaiterId reader = waits(shared("a"));
  const WaiterId impatient = asks(spec);
  EXPECT_EQ(said(waiting), "not obtained: superseded");
  EXPECT_EQ(said(impatient), "not obtained: busy");
  EXPECT_EQ(grant_of(reader).floor, blocker.token) << "whoever stood behind it has the turn";
}

TEST_F(CoreTest, ARetrySetsItsOwnWait) {
  takes(exclusive({"a"}, 600s));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  waits(spec, 1s);
  pass(900ms);
  const WaiterId again = waits(spec, 1s);
  after(999ms);
  EXPECT_FALSE(is_answered(again));
  after(1ms);
  EXPECT_EQ(said(again), "not obtained: timeout");
}

TEST_F(CoreTest, TheSameOwnerAskingTwiceWaitsLikeEveryone) {  // Hard cases 11 and 16.
  Spec spec = exclusive({"a"});
  spec.owner = "me@here:1";
  const Granted mine = takes(spec);
  const WaiterId mine_again = waits(spec);
  EXPECT_FALSE(is_answered(mine_again));
  EXPECT_TRUE(releases(mine.lease));
  EXPECT_GT(grant_of(mine_again).token, mine.token);
  EXPECT_NE(grant_of(mine_again).lease, mine.lease);
}

// --- Waiting -------------------------------------------------------------------------------------

TEST_F(CoreTest, WaitersAreServedInOrderOfArrival) {  // Hard case 23.
  Granted holder = takes(exclusive({"a"}));
  std::vector<WaiterId> line;
  for (int i = 0; i < 50; ++i) line.push_back(waits(exclusive({"a"})));
  for (const WaiterId next : line) {
    ASSERT_FALSE(is_answered(next));
    releases(holder.lease);
    holder = grant_of(next);
  }
}

TEST_F(CoreTest, AReleaseAnswersOnlyTheWaiterItGrants) {  // Hard case 22.
  judged_ = false;
  Granted holder = takes(exclusive({"a"}));
  std::vector<WaiterId> line;
  for (int i = 0; i < 10'000; ++i) line.push_back(waits(exclusive({"a"})));
  for (const WaiterId next : line) {
    releases(holder.lease);
    ASSERT_EQ(replies_.size(), 2U);  // To the one that released, to the one that got it.
    holder = grant_of(next);
  }
}

TEST_F(CoreTest, TheTimeWaitedIsRoundedDown) {  // G7: a client adds it to its deadline.
  const Granted holder = takes(exclusive({"a"}));
  const WaiterId waiting = waits(exclusive({"a"}));
  pass(2ms - 1ns);
  releases(holder.lease);
  EXPECT_EQ(grant_of(waiting).waited, 1ms);
}

TEST_F(CoreTest, ANewcomerDoesNotPassTheQueue) {
  const Granted reader = takes(shared("a"));
  const WaiterId writer = waits(exclusive({"a"}));
  EXPECT_EQ(said(asks(shared("a"))), "not obtained: busy")
      << "readers cannot starve a writer";  // Hard case 23.
  const WaiterId late_reader = waits(shared("a"));
  releases(reader.lease);
  EXPECT_TRUE(is_granted(writer));
  EXPECT_FALSE(is_answered(late_reader));
}

TEST_F(CoreTest, AWaitThatIsOverAnswersTimeout) {
  takes(exclusive({"a"}, 600s));
  const WaiterId waiting = waits(exclusive({"a"}), 5s);
  after(4999ms);
  EXPECT_FALSE(is_answered(waiting));
  after(1ms);
  EXPECT_EQ(said(waiting), "not obtained: timeout");
  EXPECT_EQ(inspect("a").waiters, 0U);
}

TEST_F(CoreTest, AWaiterWhoseWaitEndsInTheSameTickIsStillGranted) {
  takes(exclusive({"a"}, 5s));
  const WaiterId waiting = waits(exclusive({"a"}), 5s);
  after(5s);
  EXPECT_TRUE(is_granted(waiting));
}

TEST_F(CoreTest, ATimedOutWaiterMakesRoomForThoseBehind) {  // Hard case 18.
  const Granted reader = takes(shared("a", 600s));
  const WaiterId writer = waits(exclusive({"a"}), 1s);
  const WaiterId second_reader = waits(shared("a"), 10s);
  after(1s);
  EXPECT_EQ(said(writer), "not obtained: timeout");
  EXPECT_EQ(grant_of(second_reader).floor, reader.token);
}

TEST_F(CoreTest, AHungUpWaiterIsNeverGranted) {  // Hard case 19.
  const Granted holder = takes(exclusive({"a"}));
  const WaiterId gone = waits(exclusive({"a"}));
  const WaiterId next = waits(exclusive({"a"}));
  hangs_up(gone);
  releases(holder.lease);
  EXPECT_FALSE(is_answered(gone));
  EXPECT_TRUE(is_granted(next));
}

TEST_F(CoreTest, AFrozenWaiterCostsOneTtlThenTheNextIsServed) {  // Hard case 19.
  const Granted holder = takes(exclusive({"a"}));
  const WaiterId frozen = waits(exclusive({"a"}, 2s));
  const WaiterId next = waits(exclusive({"a"}));
  releases(holder.lease);
  EXPECT_TRUE(is_granted(frozen));
  commit();
  after(2s);
  EXPECT_TRUE(is_granted(next));
}

TEST_F(CoreTest, AHangUpAfterTheGrantLeavesTheGrantToTheRetry) {  // Hard case 18.
  const Granted holder = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId waiting = waits(spec);
  releases(holder.lease);
  const std::string granted = said(waiting);
  hangs_up(waiting);
  EXPECT_EQ(said(asks(spec)), granted);
}

TEST_F(CoreTest, AThousandWaitersThatHangUpLeaveNothingBehind) {  // Hard case 20.
  judged_ = false;
  const Granted holder = takes(exclusive({"a"}));
  std::vector<WaiterId> line;
  for (int i = 0; i < 1000; ++i)
    line.push_back(waits(exclusive({"a", "b" + std::to_string(i % 10)})));
  for (const WaiterId waiter : line) hangs_up(waiter);
  EXPECT_EQ(inspect("a").waiters, 0U);
  EXPECT_EQ(core_->totals().waiters, 0U);
  EXPECT_EQ(core_->totals().locks, 1U);
  releases(holder.lease);
  EXPECT_EQ(core_->totals().locks, 0U);
}

TEST_F(CoreTest, CancelEndsAWaitOrLeavesTheGrant) {  // Hard case 18.
  const Granted holder = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId waiting = waits(spec);
  EXPECT_TRUE(cancels(kRequest));
  EXPECT_EQ(said(waiting), "not obtained: cancelled");
  EXPECT_FALSE(cancels(kRequest));

  const WaiterId again = waits(spec);  // Nothing was granted, so it is a new request.
  releases(holder.lease);
  EXPECT_FALSE(cancels(kRequest));
  EXPECT_EQ(inspect("a").token, grant_of(again).token) << "the grant stands";
}

TEST_F(CoreTest, OneWaiterTooManyIsRefused) {  // G10.
  options_.in_all.waiters = 2;
  restart();
  const Granted holder = takes(exclusive({"a"}));
  const WaiterId first = waits(exclusive({"a"}));
  waits(exclusive({"a"}));
  EXPECT_EQ(said(waits(exclusive({"a"}))), "refused: waiters full");
  EXPECT_TRUE(is_granted(asks(exclusive({"b"})))) << "what is free needs no place in line";
  releases(holder.lease);
  EXPECT_TRUE(is_granted(first));
  EXPECT_FALSE(is_answered(waits(exclusive({"a"}))));
}

TEST_F(CoreTest, PositionOfAnAsyncWaiterIsItsFurthestBack) {
  takes(exclusive({"a"}));
  waits(exclusive({"a"}));
  waits(exclusive({"a"}));
  Spec spec = exclusive({"b", "a"});
  spec.request = kRequest;
  spec.async = true;
  EXPECT_EQ(said(waits(spec)), "queued at 3");
}

// --- Several locks -------------------------------------------------------------------------------

TEST_F(CoreTest, SeveralLocksAreTakenTogetherUnderOneTokenOrNotAtAll) {
  const Granted b = takes(exclusive({"b"}));
  EXPECT_EQ(said(asks(exclusive({"a", "b", "c"}))), "not obtained: busy");
  EXPECT_EQ(state("a"), LockState::kFree);
  releases(b.lease);
  const Granted all = takes(exclusive({"a", "b", "c"}));
  for (const std::string lock : {"a", "b", "c"}) EXPECT_EQ(inspect(lock).token, all.token);
  EXPECT_EQ(core_->totals().leases, 1U);
  EXPECT_TRUE(releases(all.lease));
  EXPECT_EQ(core_->totals().locks, 0U);
}

TEST_F(CoreTest, OppositeOrdersOfTheSameLocksCannotDeadlock) {  // Hard case 24.
  const Granted first = takes(exclusive({"a", "b"}));
  const WaiterId second = waits(exclusive({"b", "a"}));
  const WaiterId third = waits(exclusive({"a", "b"}));
  releases(first.lease);
  releases(grant_of(second).lease);
  EXPECT_TRUE(is_granted(third));
}

TEST_F(CoreTest, AWaiterForEightLocksIsNotStarvedByWaitersForOne) {  // Hard case 24.
  std::vector<std::string> eight;
  std::vector<LeaseId> held;
  for (int i = 0; i < 8; ++i) {
    eight.push_back("lock-" + std::to_string(i));
    held.push_back(takes(exclusive({eight.back()})).lease);
  }
  const WaiterId patient = waits(exclusive(eight));
  std::vector<WaiterId> latecomers;
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_FALSE(is_answered(patient));
    latecomers.push_back(waits(exclusive({eight[i]})));
    releases(held[i]);
    EXPECT_FALSE(is_answered(latecomers.back())) << "the lock stands idle for who came first";
  }
  releases(grant_of(patient).lease);
  for (const WaiterId waiter : latecomers) EXPECT_TRUE(is_granted(waiter));
}

TEST_F(CoreTest, TheHeadOfOneQueueWaitsForItsTurnInTheOthers) {
  const Granted a = takes(exclusive({"a"})), c = takes(exclusive({"c"}));
  const WaiterId first = waits(exclusive({"b", "c"}));
  const WaiterId second = waits(exclusive({"a", "b"}));
  releases(
      // The second is at the head of a, and b is free; but the first came before it at b.
      a.lease);
  EXPECT_FALSE(is_answered(second));
  releases(c.lease);
  EXPECT_TRUE(is_granted(first));
  EXPECT_FALSE(is_answered(second));
  releases(grant_of(first).lease);
  EXPECT_TRUE(is_granted(second));
}

TEST_F(CoreTest, GivingUpSeveralLocksFreesEachQueue) {  // Hard case 18.
  const Granted a = takes(exclusive({"a"}));
  const WaiterId both = waits(exclusive({"a", "b"}));
  const WaiterId behind = waits(exclusive({"b"}));
  EXPECT_FALSE(is_answered(behind));
  hangs_up(both);
  EXPECT_TRUE(is_granted(behind)) << describe(a);
}

// --- Shared and limit ----------------------------------------------------------------------------

TEST_F(CoreTest, ARunOfReadersAtTheHeadIsGrantedTogether) {
  const Granted writer = takes(exclusive({"a"}));
  const WaiterId r1 = waits(shared("a")), r2 = waits(shared("a"));
  const WaiterId w = waits(exclusive({"a"}));
  const WaiterId r3 = waits(shared("a"));
  releases(writer.lease);
  EXPECT_TRUE(is_granted(r1) && is_granted(r2));
  EXPECT_FALSE(is_answered(w) || is_answered(r3));
  releases(grant_of(r1).lease);
  releases(grant_of(r2).lease);
  EXPECT_TRUE(is_granted(w));
}

TEST_F(CoreTest, TheFloorIsTheSmallestLiveToken) {
  const Granted first = takes(shared("a")), second = takes(shared("a"));
  EXPECT_EQ(first.floor, first.token);
  EXPECT_EQ(second.floor, first.token);
  releases(first.lease);
  EXPECT_EQ(takes(shared("a")).floor, second.token);
  EXPECT_EQ(takes(exclusive({"b"})).floor, Token{4}) << "its own, unless shared";
}

TEST_F(CoreTest, AReaderThatIsOverSetsNoFloorThoughItsPlaceIsClosed) {
  Spec spec = shared("a", 1s);
  spec.delay = 60s;
  takes(spec);
  after(1s);
  const Granted reader = takes(shared("a"));
  EXPECT_EQ(reader.floor, reader.token);
  EXPECT_EQ(said(asks(exclusive({"a"}))), "not obtained: busy");
}

TEST_F(CoreTest, ReadersNeverShareWithLimit) {
  takes(shared("a"));
  EXPECT_EQ(said(asks(limit(5, "a"))), "not obtained: busy");
  takes(limit(5, "b"));
  EXPECT_EQ(said(asks(shared("b"))), "not obtained: busy");
}

TEST_F(CoreTest, LimitLetsTheLeastOfAllLimitsIn) {
  takes(limit(3, "a"));
  takes(limit(2, "a"));
  EXPECT_EQ(said(asks(limit(3, "a"))), "not obtained: busy") << "a holder wants no more than two";
  EXPECT_EQ(said(asks(limit(1, "a"))), "not obtained: busy");
  EXPECT_EQ(said(asks(exclusive({"a"}))), "not obtained: busy");
  takes(limit(5, "c"));
  EXPECT_EQ(said(asks(limit(1, "c"))), "not obtained: busy") << "it wants to be alone";
  takes(exclusive({"b"}));
  EXPECT_EQ(said(asks(limit(9, "b"))), "not obtained: busy") << "exclusive is LIMIT 1";
}

TEST_F(CoreTest, SlotsAreUniqueBelowTheLimitAndUsedAgain) {
  const Granted s0 = takes(limit(3, "a")), s1 = takes(limit(3, "a")), s2 = takes(limit(3, "a"));
  EXPECT_EQ((std::set{*s0.slot, *s1.slot, *s2.slot}), (std::set<std::uint32_t>{0, 1, 2}));
  const WaiterId next = waits(limit(3, "a"));
  releases(s1.lease);
  EXPECT_EQ(grant_of(next).slot, s1.slot);
  EXPECT_FALSE(takes(exclusive({"b"})).slot.has_value());
}

TEST_F(CoreTest, SlotsSurviveARestart) {
  const Granted s0 = takes(limit(2, "a")), s1 = takes(limit(2, "a"));
  restart();
  releases(s0.lease);
  EXPECT_EQ(takes(limit(2, "a")).slot, s0.slot);
  EXPECT_NE(s0.slot, s1.slot);
}

}  // namespace
}  // namespace pawl::core
