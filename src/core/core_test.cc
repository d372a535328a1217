// The life of a lease, one sentence per rule: tokens, time, release, break, delay, maximum hold.
#include "core/testlib/core_fixture.h"

namespace pawl::core {
namespace {

// --- Tokens --------------------------------------------------------------------------------------

TEST_F(CoreTest, EveryGrantOfAnyLockHasAGreaterTokenThanAllBefore) {  // Hard case 12.
  Token last;
  for (int i = 0; i < 100; ++i) {
    const Granted grant = takes(exclusive({"lock-" + std::to_string(i % 7)}));
    EXPECT_GT(grant.token, last);
    last = grant.token;
    releases(grant.lease);
  }
}

TEST_F(CoreTest, ALockThatWasForgottenAThousandTimesNeverStartsAgainAtOne) {  // Hard case 13.
  judged_ = false;
  for (std::uint64_t i = 1; i <= 100'000; ++i) {
    const WaiterId waiter = asks(exclusive({"again"}));
    ASSERT_EQ(grant_of(waiter).token, Token{i});
    ASSERT_TRUE(releases(grant_of(waiter).lease));
    answers_.clear();
    if (i % 1000 == 0) commit();
  }
  EXPECT_EQ(core_->totals().locks, 0U);
}

TEST_F(CoreTest, ARestartContinuesAboveTheHighWater) {
  const Granted before = takes(exclusive({"a"}));
  high_water_ = 5000;
  restart();
  EXPECT_EQ(takes(exclusive({"b"})).token, Token{5001});
  EXPECT_LT(before.token, Token{5001});
}

TEST_F(CoreTest, GrantsAreRefusedWhenTokensAreUsedUp) {  // Hard case 14.
  high_water_ = limits::kTokenMax - 2;                   // 2^53 - 3
  restart();
  const Granted last_but_one = takes(exclusive({"a"}));
  const Granted last = takes(exclusive({"b"}));
  EXPECT_EQ(last.token.value, limits::kTokenMax);
  EXPECT_EQ(said(asks(exclusive({"c"}))), "refused: exhausted");
  EXPECT_TRUE(std::holds_alternative<Renewed>(renews(last_but_one.lease)))
      << "who holds goes on holding";

  const WaiterId in_line = waits(exclusive({"a"}));
  EXPECT_TRUE(releases(last_but_one.lease));
  EXPECT_EQ(said(in_line), "refused: exhausted");
  EXPECT_EQ(core_->totals().last_token.value, limits::kTokenMax);
}

TEST_F(CoreTest, ExhaustionAnswersALongQueueWithoutRecursion) {
  judged_ = false;
  high_water_ = limits::kTokenMax - 1;
  restart();
  const Granted last = takes(exclusive({"a", "b"}));
  for (int i = 0; i < 200'000; ++i)
    waits(
        exclusive(i % 3 == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"}));
  EXPECT_TRUE(releases(last.lease));
  EXPECT_EQ(replies_.size(), 200'001U);
  EXPECT_EQ(core_->totals().waiters, 0U);
  EXPECT_EQ(core_->totals().locks, 0U);
}

TEST_F(CoreTest, RaiseMovesTheCounterForwardOnlyAndNotTooFar) {
  takes(exclusive({"a"}));
  EXPECT_EQ(describe(raises(1)), "refused: raise back");
  EXPECT_EQ(describe(raises(1 + limits::kRaiseMax + 1)), "refused: raise too far");
  EXPECT_EQ(describe(raises(1 + limits::kRaiseMax)),
            "raised to " + std::to_string(1 + limits::kRaiseMax));
  EXPECT_EQ(events_,
            std::vector<std::string>{"raised token " + std::to_string(1 + limits::kRaiseMax) +
                                     " because because"});
  commit();
  EXPECT_EQ(high_water_, 1 + limits::kRaiseMax) << "or a restart would go back";
  EXPECT_EQ(takes(exclusive({"b"})).token.value, 2 + limits::kRaiseMax);
}

TEST_F(CoreTest, RaiseNeverPassesTheLastToken) {
  high_water_ = limits::kTokenMax - 10;
  restart();
  EXPECT_EQ(describe(raises(limits::kTokenMax + 1)), "refused: raise too far");
  EXPECT_EQ(describe(raises(limits::kTokenMax)), "raised to " + std::to_string(limits::kTokenMax));
}

// --- Time ----------------------------------------------------------------------------------------

TEST_F(CoreTest, TheTtlBeginsWhenTheGrantIsDurable) {
  const WaiterId holder = asks(exclusive({"a"}, 1s));
  submit();
  after(5s);  // The sync takes long.
  EXPECT_EQ(state("a"), LockState::kHeld);
  EXPECT_EQ(inspect("a").holders[0].expires_in, 1s);
  durable();
  after(999ms);
  EXPECT_EQ(state("a"), LockState::kHeld);
  after(1ms);
  EXPECT_EQ(state("a"), LockState::kFree);
  EXPECT_EQ(describe(renews(grant_of(holder).lease)), "lost expired token 1");
}

TEST_F(CoreTest, NothingExpiresAFractionOfAMillisecondEarly) {
  pass(300us);
  const Granted grant = takes(exclusive({"a"}, 100ms));
  after(100ms - 1ns);
  EXPECT_EQ(state("a"), LockState::kHeld);
  after(1ms);
  EXPECT_EQ(state("a"), LockState::kFree) << describe(grant);
}

TEST_F(CoreTest, ARenewalInTheTurnItsLeaseFallsDueWins) {  // Hard case 9.
  const Granted grant = takes(exclusive({"a"}, 1s));
  const WaiterId next = waits(exclusive({"a"}));
  pass(1s);
  EXPECT_EQ(describe(renews(grant.lease)), "renewed, left 1000ms");
  tick();
  EXPECT_FALSE(is_answered(next));
  after(999ms);
  EXPECT_FALSE(is_answered(next));
  after(1ms);
  EXPECT_TRUE(is_granted(next));
}

TEST_F(CoreTest, ARenewalAfterTheExpiryNeverRevives) {  // Hard case 9.
  const Granted grant = takes(exclusive({"a"}, 1s));
  after(1s);
  EXPECT_EQ(describe(renews(grant.lease)), "lost expired token 1");
  EXPECT_NE(replies_[0].after, BatchId{}) << "not to be said before the end is durable";
  EXPECT_EQ(state("a"), LockState::kFree);
}

TEST_F(CoreTest, AfterALongPauseLeasesEndInOrderOfTheirDeadlines) {
  const Granted renewed = takes(shared("a", 10s)), other = takes(shared("a", 12s));
  after(4s);
  renews(renewed.lease);  // Now due two seconds after the other.
  after(60s);
  const auto history = core_->history("a", 2);
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[0].token, renewed.token) << "newest first";
  EXPECT_EQ(history[1].token, other.token);
}

TEST_F(CoreTest, ARenewalOfAnOldLeaseDoesNotTouchTheNewHolder) {  // Hard case 10.
  const Granted first = takes(exclusive({"a"}, 1s));
  after(1s);
  const Granted second = takes(exclusive({"a"}, 1s));
  pass(500ms);
  EXPECT_EQ(describe(renews(first.lease)), "lost expired token 1");
  EXPECT_EQ(inspect("a").holders[0].expires_in, 500ms);
  EXPECT_EQ(inspect("a").holders[0].token, second.token);
  EXPECT_EQ(inspect("a").holders[0].renewals, 0U);
}

TEST_F(CoreTest, RenewalsAreMemoryOnly) {
  const Granted grant = takes(exclusive({"a"}));
  for (int i = 0; i < 10; ++i) {
    after(5s);
    EXPECT_EQ(describe(renews(grant.lease)), "renewed, left 10000ms");
    EXPECT_EQ(replies_[0].after, BatchId{});
  }
  EXPECT_EQ(submit(), BatchId{});
  EXPECT_EQ(inspect("a").holders[0].renewals, 10U);
}

TEST_F(CoreTest, ARenewalIsNotAnsweredBeforeItsGrantIsDurable) {
  const WaiterId holder = asks(exclusive({"a"}));
  const BatchId batch = submit();
  renews(grant_of(holder).lease);
  EXPECT_EQ(replies_[0].after, batch);
}

TEST_F(CoreTest, AnUnknownLeaseIsLostWithoutAnEnding) {
  EXPECT_EQ(describe(renews(LeaseId{1, 2})), "lost unknown token 0");
  EXPECT_FALSE(releases(LeaseId{1, 2}));
}

TEST_F(CoreTest, YearsOfServiceTimeDoNotStopTheWheel) {
  now_.tick =
      Tick(Millis((std::int64_t{1} << 36) - 5000));  // Where a wheel of 36 bits comes round.
  restart();
  const Granted grant = takes(exclusive({"a"}, 10s));
  const WaiterId next = waits(exclusive({"a"}), 20s);
  after(9999ms);
  EXPECT_FALSE(is_answered(next));
  after(1ms);
  EXPECT_TRUE(is_granted(next));
  now_.tick = Tick(Millis((std::int64_t{1} << 42) - 1));
  tick();
  EXPECT_EQ(state("a"), LockState::kHeld) << "its TTL has not begun: " << describe(grant);
  commit();
  after(10s);
  EXPECT_EQ(state("a"), LockState::kFree);
}

TEST_F(CoreTest, TheNextDeadlineIsNeverLaterThanWhatIsDue) {
  EXPECT_EQ(core_->next_deadline(), kNever);
  const Granted grant = takes(exclusive({"a"}, 3s));
  while (state("a") == LockState::kHeld) {
    ASSERT_LE(core_->next_deadline(), Tick(1h + 3s)) << describe(grant);
    ASSERT_GT(core_->next_deadline(), now_.tick);
    now_.tick = core_->next_deadline();
    tick();
  }
  EXPECT_EQ(now_.tick, Tick(1h + 3s));
}

TEST_F(CoreTest, AWallClockThatGoesBackDecidesNothing) {  // Hard case 26, the core's part.
  const Granted grant = takes(exclusive({"a"}, 1s));
  now_.wall.value -= 3'600'000;
  EXPECT_EQ(inspect("a").holders[0].held, 0ms);
  now_.wall.value += 7'200'000;
  tick();
  EXPECT_EQ(describe(renews(grant.lease)), "renewed, left 1000ms");
}

// --- Release -------------------------------------------------------------------------------------

TEST_F(CoreTest, AReleaseByAFormerHolderLeavesTheNewOneAlone) {  // Hard case 6.
  const Granted first = takes(exclusive({"a"}, 1s));
  after(1s);
  const Granted second = takes(exclusive({"a"}));
  EXPECT_FALSE(releases(first.lease));
  EXPECT_EQ(inspect("a").token, second.token);
}

TEST_F(CoreTest, AReleaseRetriedAnswersAlreadyOverOnceTheFirstIsDurable) {  // Hard case 7.
  const Granted grant = takes(exclusive({"a"}));
  EXPECT_TRUE(releases(grant.lease));
  const BatchId batch = submit();
  EXPECT_FALSE(releases(grant.lease));
  EXPECT_EQ(replies_[0].after, batch) << "it rests on a release that could still be lost";
}

TEST_F(CoreTest, AReleaseAndTheGrantThatFollowsAreOneBatch) {
  const Granted first = takes(exclusive({"a"}));
  const WaiterId next = waits(exclusive({"a"}));
  pass(2s);
  EXPECT_TRUE(releases(first.lease));
  const Granted second = grant_of(next);
  EXPECT_EQ(second.waited, 2s);
  ASSERT_EQ(replies_.size(), 2U);
  EXPECT_EQ(replies_[0].after, replies_[1].after);
  EXPECT_EQ(submit(), replies_[0].after);
  EXPECT_EQ(submit(), BatchId{});
  restart();  // Before it was durable: neither happened.
  EXPECT_EQ(inspect("a").token, first.token);
}

TEST_F(CoreTest, AGrantReleasedBeforeItWasDurableIsGone) {
  const WaiterId holder = asks(exclusive({"a"}));
  submit();
  EXPECT_TRUE(releases(grant_of(holder).lease));
  commit();
  EXPECT_EQ(state("a"), LockState::kFree);
  restart();
  EXPECT_EQ(state("a"), LockState::kFree);
  EXPECT_EQ(core_->totals().leases, 0U);
}

TEST_F(CoreTest, NoReplyBeforeItsBatchIsDurable) {  // G2.
  const WaiterId holder = asks(exclusive({"a"}));
  EXPECT_NE(replies_[0].after, BatchId{});
  EXPECT_EQ(replies_[0].after, core_->last_batch());
  EXPECT_EQ(replies_[0].after, submit());
  EXPECT_EQ(core_->last_batch(), replies_[0].after) << "reads wait for the writes before them";
  durable();
  EXPECT_EQ(core_->last_batch(), BatchId{});
  EXPECT_TRUE(releases(grant_of(holder).lease));
  EXPECT_EQ(replies_[0].after, submit());
}

// --- Break ---------------------------------------------------------------------------------------

TEST_F(CoreTest, ABrokenLeaseRunsOutAndCannotBeRenewed) {
  const Granted holder = takes(exclusive({"a", "b"}, 10s));
  const WaiterId next = waits(exclusive({"b"}));
  after(4s);
  EXPECT_TRUE(breaks("b", holder.token));
  EXPECT_EQ(events_, (std::vector<std::string>{
                         "breaking token 1 exclusive lock a owner owner 1 because stuck",
                         "breaking token 1 exclusive lock b owner owner 1 because stuck"}));
  commit();
  EXPECT_EQ(describe(renews(holder.lease)), "lost broken token 1");
  EXPECT_TRUE(inspect("a").holders[0].breaking);
  after(5999ms);
  EXPECT_FALSE(is_answered(next)) << "so that G3 and G7 hold";
  after(1ms);
  EXPECT_TRUE(is_granted(next));
  EXPECT_EQ(how_it_ended("a"), "broken");
}

TEST_F(CoreTest, BreakNowHandsOnAtOnceAndSkipsTheDelay) {
  Spec spec = exclusive({"a"});
  spec.delay = 30s;
  const Granted holder = takes(spec);
  const WaiterId next = waits(exclusive({"a"}));
  EXPECT_TRUE(breaks("a", holder.token, true));
  EXPECT_TRUE(is_granted(next));
  EXPECT_EQ(events_[0],
            "broken token 1 exclusive lock a owner owner 1 ending broken because stuck");
  EXPECT_EQ(describe(renews(holder.lease)), "lost broken token 1");
}

TEST_F(CoreTest, BreakNamesTheTokenTheOperatorSaw) {
  const Granted a = takes(exclusive({"a"})), b = takes(exclusive({"b"}));
  EXPECT_FALSE(breaks("a", b.token)) << "not a holder of that lock";
  EXPECT_FALSE(breaks("a", Token{99}));
  EXPECT_FALSE(breaks("nobody's", a.token));
  EXPECT_EQ(submit(), BatchId{});
  releases(a.lease);
  EXPECT_FALSE(breaks("a", a.token, true)) << "over already";
}

TEST_F(CoreTest, ABreakSurvivesARestart) {
  const Granted holder = takes(exclusive({"a"}));
  breaks("a", holder.token);
  commit();
  restart();
  EXPECT_EQ(describe(renews(holder.lease)), "lost broken token 1");
  EXPECT_TRUE(inspect("a").holders[0].breaking);
  after(10s);
  EXPECT_EQ(state("a"), LockState::kFree);
}

TEST_F(CoreTest, ABrokenHolderThatReleasesFreesAtOnceWithoutDelay) {
  Spec spec = exclusive({"a"});
  spec.delay = 30s;
  spec.request = kRequest;
  const Granted holder = takes(spec);
  breaks("a", holder.token);
  EXPECT_EQ(said(asks(spec)), "lost broken token 1");
  EXPECT_TRUE(releases(holder.lease));
  EXPECT_EQ(state("a"), LockState::kFree);
}

// --- Delay and maximum hold ----------------------------------------------------------------------

TEST_F(CoreTest, ADelayKeepsTheLockClosedAfterAnExpiryAndNotAfterARelease) {
  Spec spec = exclusive({"a"}, 1s);
  spec.delay = 5s;
  takes(spec);
  after(1s);
  EXPECT_EQ(state("a"), LockState::kClosed);
  EXPECT_EQ(inspect("a").reopens_in, 5s);
  EXPECT_EQ(inspect("a").token, std::nullopt);
  EXPECT_EQ(core_->totals().leases, 0U);
  EXPECT_EQ(said(asks(exclusive({"a"}))), "not obtained: busy");
  const WaiterId next = waits(spec);
  after(4999ms);
  EXPECT_FALSE(is_answered(next));
  after(1ms);
  EXPECT_TRUE(is_granted(next));
  releases(grant_of(next).lease);
  EXPECT_EQ(state("a"), LockState::kFree);
}

TEST_F(CoreTest, ADelayStartsInFullAfterARestart) {
  Spec spec = exclusive({"a"}, 1s);
  spec.delay = 5s;
  const Granted holder = takes(spec);
  after(1s);
  commit();
  after(4s);
  restart();
  EXPECT_EQ(inspect("a").reopens_in, 5s);
  EXPECT_EQ(describe(renews(holder.lease)), "lost unknown token 0");
  EXPECT_FALSE(breaks("a", holder.token)) << "closed is not live";
  after(5s);
  EXPECT_EQ(state("a"), LockState::kFree);
  commit();
  EXPECT_EQ(disk_.size(), 1U) << "the last token, and no lease";
}

TEST_F(CoreTest, AClosedPlaceCountsUnderLimit) {
  Spec spec = limit(2, "a", 1s);
  spec.delay = 5s;
  takes(spec);
  const Granted other = takes(limit(2, "a"));
  after(1s);
  EXPECT_EQ(state("a"), LockState::kHeld);
  const WaiterId next = waits(limit(2, "a"));
  EXPECT_FALSE(is_answered(next));
  after(5s);
  EXPECT_NE(grant_of(next).slot, other.slot);
}

TEST_F(CoreTest, MaxHoldCapsTheTenureFromDurabilityOn) {
  Spec spec = exclusive({"a"}, 10s);
  spec.max_hold = 15s;
  const WaiterId holder = asks(spec);
  after(3s);
  commit();
  const LeaseId lease = grant_of(holder).lease;
  after(9s);
  EXPECT_EQ(describe(renews(lease)), "renewed, left 6000ms");
  after(5s);
  EXPECT_EQ(describe(renews(lease)), "renewed, left 1000ms");
  after(1s);
  EXPECT_EQ(describe(renews(lease)), "lost max_hold token 1");
  EXPECT_EQ(how_it_ended("a"), "max_hold");
}

TEST_F(CoreTest, ARenewalWhenNothingIsLeftEndsTheLease) {
  Spec spec = exclusive({"a"}, 10s);
  spec.max_hold = 10s;
  const Granted holder = takes(spec);
  const WaiterId next = waits(exclusive({"a"}));
  pass(10s);
  EXPECT_EQ(describe(renews(holder.lease)), "lost max_hold token 1");
  EXPECT_NE(replies_.back().after, BatchId{});
  tick();
  EXPECT_TRUE(is_granted(next));
}

TEST_F(CoreTest, ALateTickDoesNotTakeAnExpiryForAMaxHold) {
  Spec spec = exclusive({"a"}, 1s);
  spec.max_hold = 3s;
  takes(spec);
  after(20s);
  EXPECT_EQ(how_it_ended("a"), "expired");
}

TEST_F(CoreTest, EndingOfALeaseIsKnownUntilARestart) {
  const Granted released = takes(exclusive({"a"}, 1s)), expired = takes(exclusive({"b"}, 1s));
  const Granted broken = takes(exclusive({"c"}, 1s)), live = takes(exclusive({"d"}, 60s));
  EXPECT_TRUE(releases(released.lease));
  EXPECT_TRUE(breaks("c", broken.token, true));
  after(2s);
  EXPECT_EQ(core_->ending_of(released.lease), Ending::kReleased);
  EXPECT_EQ(core_->ending_of(expired.lease), Ending::kExpired);
  EXPECT_EQ(core_->ending_of(broken.lease), Ending::kBroken);
  EXPECT_EQ(core_->ending_of(live.lease), std::nullopt);
  EXPECT_EQ(core_->ending_of(LeaseId{1, 2}), std::nullopt);
  commit();
  restart();
  EXPECT_EQ(core_->ending_of(expired.lease), std::nullopt);
}

}  // namespace
}  // namespace pawl::core
