// The rules of the core, one sentence each.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/describe.h"
#include "core/invariants.h"
#include "core/naive_model.h"

namespace pawl::core {
namespace {

using namespace std::chrono_literals;
using naive::Spec;

Spec exclusive(std::vector<std::string> locks, Millis ttl = 10s) {
  Spec spec;
  spec.locks = std::move(locks);
  spec.ttl = ttl;
  spec.owner = "somebody";
  return spec;
}
Spec shared(std::string lock, Millis ttl = 10s) {
  Spec spec = exclusive({std::move(lock)}, ttl);
  spec.mode = Mode::kShared;
  return spec;
}
Spec limit(std::uint32_t n, std::string lock, Millis ttl = 10s) {
  Spec spec = exclusive({std::move(lock)}, ttl);
  spec.mode = Mode::kLimit;
  spec.limit = n;
  return spec;
}

const std::string kRequest = "request-0123456789abcdef";

// A core, a clock that is moved by hand, and a store that commits when told to. Every step is also judged by the
// invariants. Someone who asks is a WaiterId; answer() is the last thing it was told.
class CoreTest : public testing::Test {
 protected:
  CoreTest() { restart(); }

  // --- Asking
  WaiterId asks(Spec spec) {
    const WaiterId waiter{++waiters_};
    ledger_.asked(waiter);
    if (spec.owner == "somebody") spec.owner = "owner " + std::to_string(waiter.value);
    step([&] { core_->apply(Acquire{waiter, spec.view(), LeaseId{7, waiter.value}}, now_); });
    return waiter;
  }
  WaiterId waits(Spec spec, Millis wait = 60s) {
    spec.wait = wait;
    return asks(std::move(spec));
  }
  WaiterId asks_again(Spec spec, const std::string& request = kRequest) {
    spec.request = request;
    return asks(std::move(spec));
  }
  // Asks for what is free, and waits until that is durable.
  Granted takes(const Spec& spec) {
    const WaiterId waiter = asks(spec);
    commit();
    return grant_of(waiter);
  }
  Outcome renews(LeaseId lease) {
    return tells([&](WaiterId waiter) { core_->apply(Renew{waiter, lease}, now_); });
  }
  bool releases(LeaseId lease) {
    return std::get<Released>(tells([&](WaiterId waiter) {
             core_->apply(Release{waiter, lease}, now_);
           }))
        .was_live;
  }
  bool breaks(const std::string& lock, Token token, bool at_once = false) {
    const auto input = [&](WaiterId waiter) {
      core_->apply(Break{waiter, lock, token, at_once, "stuck"}, now_);
    };
    return std::get<BreakDone>(tells(input)).was_live;
  }
  bool cancels(const std::string& request) {
    const auto input = [&](WaiterId waiter) { core_->apply(CancelRequest{waiter, request}, now_); };
    return std::get<CancelDone>(tells(input)).was_waiting;
  }
  Outcome raises(std::uint64_t token) {
    return tells([&](WaiterId waiter) { core_->apply(Raise{waiter, Token{token}, "because"}, now_); });
  }
  void hangs_up(WaiterId waiter) {
    ledger_.hung_up(waiter);
    step([&] { core_->apply(Cancel{waiter}, now_); });
  }

  // --- Time and durability
  void pass(Nanos by) { now_.tick += by; }  // Time goes by, and the turn has not come to its tick.
  void tick() {
    step([&] { core_->tick(now_); });
  }
  void after(Nanos by) {
    pass(by);
    tick();
  }
  BatchId submit() {
    Batch batch;
    const BatchId id = core_->take_batch(batch);
    if (id.value != 0) flying_.emplace_back(id, batch);
    high_water_ = std::max(high_water_, batch.covered());
    return id;
  }
  void durable() {
    while (!flying_.empty()) {
      const auto [id, batch] = flying_.front();
      flying_.pop_front();
      store(batch);
      step([&, id = id] { core_->durable(id, now_); });
    }
  }
  void commit() {
    submit();
    durable();
  }
  // kill -9, and a new core from what was durable.
  void restart() {
    core_ = std::make_unique<Core>(options_);
    flying_.clear();
    answers_.clear();
    ledger_.restarted();
    for (const auto& [key, value] : disk_) EXPECT_TRUE(core_->load(key, value));
    EXPECT_TRUE(core_->loaded(Token{high_water_}, now_));
    before_ = snapshot(*core_, now_);
  }

  // --- What was said
  bool is_told(WaiterId waiter) const { return answers_.contains(waiter); }
  Outcome answer(WaiterId waiter) const {
    EXPECT_TRUE(is_told(waiter)) << "w" << waiter.value << " heard nothing";
    return is_told(waiter) ? answers_.at(waiter) : Outcome{};
  }
  std::string said(WaiterId waiter) const {
    return is_told(waiter) ? describe(answers_.at(waiter)) : "nothing";
  }
  bool is_granted(WaiterId waiter) const {
    return is_told(waiter) && std::holds_alternative<Granted>(answers_.at(waiter));
  }
  Granted grant_of(WaiterId waiter) const {
    EXPECT_TRUE(is_granted(waiter)) << said(waiter);
    return is_granted(waiter) ? std::get<Granted>(answers_.at(waiter)) : Granted{};
  }
  LockView inspect(const std::string& lock) const { return core_->inspect(lock, now_); }
  LockState state(const std::string& lock) const { return inspect(lock).state; }
  std::string how_it_ended(const std::string& lock) const {
    const auto history = core_->history(lock, 1);
    return history.empty() ? "never" : std::string(to_text(history[0].how));
  }

  template <class Input>
  Outcome tells(Input input) {
    const WaiterId waiter{++waiters_};
    ledger_.asked(waiter);
    step([&] { input(waiter); });
    return answer(waiter);
  }

  template <class Action>
  void step(Action action) {
    core_->output().clear();
    events_.clear();
    action();
    replies_ = core_->output().replies;
    for (const Reply& reply : replies_) answers_[reply.waiter] = reply.outcome;
    for (const Event& event : core_->output().events) {
      events_.push_back(describe(core_->output(), event));
      const std::string reason(core_->output().reason(event));
      if (!reason.empty()) events_.back() += " because " + reason;
    }
    if (!judged_) return;
    Snapshot after = snapshot(*core_, now_);
    for (const std::string& broken : check_step(before_, after, core_->output())) ADD_FAILURE() << broken;
    for (const std::string& broken : ledger_.settle(replies_, after)) ADD_FAILURE() << broken;
    before_ = std::move(after);
  }

  void store(const Batch& batch) {
    std::string_view bytes = batch.bytes();
    while (!bytes.empty()) {
      const auto operation = take_operation(bytes);
      ASSERT_TRUE(operation);
      if (operation->put) {
        disk_[std::string(operation->key)] = operation->value;
      } else {
        disk_.erase(std::string(operation->key));
      }
    }
  }

  Options options_;
  std::unique_ptr<Core> core_;
  Now now_{Tick(1h), UnixMs{1'700'000'000'000}};
  bool judged_ = true;  // Off where the state is so large that looking at all of it each step takes too long.
  std::vector<Reply> replies_;       // of the last step
  std::vector<std::string> events_;  // of the last step
  std::map<WaiterId, Outcome> answers_;
  std::uint64_t waiters_ = 0;
  std::uint64_t high_water_ = 0;
  std::deque<std::pair<BatchId, Batch>> flying_;
  std::map<std::string, std::string> disk_;
  Snapshot before_;
  ReplyLedger ledger_;
};

// --- Tokens ---------------------------------------------------------------------------------------------------------------

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

TEST_F(CoreTest, WhenTokensAreUsedUpGrantsAreRefusedByName) {  // Hard case 14.
  high_water_ = limits::kTokenMax - 2;                         // 2^53 - 3
  restart();
  const Granted last_but_one = takes(exclusive({"a"}));
  const Granted last = takes(exclusive({"b"}));
  EXPECT_EQ(last.token.value, limits::kTokenMax);
  EXPECT_EQ(said(asks(exclusive({"c"}))), "refused: exhausted");
  EXPECT_TRUE(std::holds_alternative<Renewed>(renews(last_but_one.lease))) << "who holds goes on holding";

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
    waits(exclusive(i % 3 == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"}));
  EXPECT_TRUE(releases(last.lease));
  EXPECT_EQ(replies_.size(), 200'001U);
  EXPECT_EQ(core_->totals().waiters, 0U);
  EXPECT_EQ(core_->totals().locks, 0U);
}

TEST_F(CoreTest, RaiseMovesTheCounterForwardOnlyAndNotTooFar) {
  takes(exclusive({"a"}));
  EXPECT_EQ(describe(raises(1)), "refused: raise back");
  EXPECT_EQ(describe(raises(1 + limits::kRaiseMax + 1)), "refused: raise too far");
  EXPECT_EQ(describe(raises(1 + limits::kRaiseMax)), "raised to " + std::to_string(1 + limits::kRaiseMax));
  EXPECT_EQ(events_, std::vector<std::string>{"raised token " + std::to_string(1 + limits::kRaiseMax) +
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

// --- Time -----------------------------------------------------------------------------------------------------------------

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
  EXPECT_FALSE(is_told(next));
  after(999ms);
  EXPECT_FALSE(is_told(next));
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

TEST_F(CoreTest, AnUnknownLeaseIsLostAndNobodyKnowsHow) {
  EXPECT_EQ(describe(renews(LeaseId{1, 2})), "lost unknown token 0");
  EXPECT_FALSE(releases(LeaseId{1, 2}));
}

TEST_F(CoreTest, YearsOfServiceTimeDoNotStopTheWheel) {
  now_.tick = Tick(Millis((std::int64_t{1} << 36) - 5000));  // Where a wheel of 36 bits comes round.
  restart();
  const Granted grant = takes(exclusive({"a"}, 10s));
  const WaiterId next = waits(exclusive({"a"}), 20s);
  after(9999ms);
  EXPECT_FALSE(is_told(next));
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

// --- Release --------------------------------------------------------------------------------------------------------------

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

TEST_F(CoreTest, NothingIsSaidBeforeItIsDurable) {  // G2.
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

// --- Request ids ----------------------------------------------------------------------------------------------------------

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

TEST_F(CoreTest, HowALeaseEndedIsToldToItsRequest) {
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
  EXPECT_TRUE(is_granted(asks_again(exclusive({"a"}), kRequest + "1"))) << "the oldest were forgotten";
}

TEST_F(CoreTest, TheSameRequestForSomethingElseIsAConflict) {  // Hard case 5.
  Spec spec = exclusive({"a", "b"});
  spec.request = kRequest;
  const WaiterId holder = asks(spec);
  commit();
  const auto conflicts = [&](const Spec& other) { return said(asks_again(other)) == "refused: conflict"; };
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

TEST_F(CoreTest, AConflictLeavesTheWaitAlone) {
  const Granted blocker = takes(exclusive({"a"}));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  const WaiterId waiting = waits(spec);
  EXPECT_EQ(said(asks_again(exclusive({"a"}, 11s))), "refused: conflict");
  EXPECT_FALSE(is_told(waiting));
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
  EXPECT_FALSE(is_told(behind));
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

TEST_F(CoreTest, ARetryWaitsAsLongAsItSaysItself) {
  takes(exclusive({"a"}, 600s));
  Spec spec = exclusive({"a"});
  spec.request = kRequest;
  waits(spec, 1s);
  pass(900ms);
  const WaiterId again = waits(spec, 1s);
  after(999ms);
  EXPECT_FALSE(is_told(again));
  after(1ms);
  EXPECT_EQ(said(again), "not obtained: timeout");
}

TEST_F(CoreTest, TheSameOwnerAskingTwiceWaitsLikeEveryone) {  // Hard cases 11 and 16.
  Spec spec = exclusive({"a"});
  spec.owner = "me@here:1";
  const Granted mine = takes(spec);
  const WaiterId mine_again = waits(spec);
  EXPECT_FALSE(is_told(mine_again));
  EXPECT_TRUE(releases(mine.lease));
  EXPECT_GT(grant_of(mine_again).token, mine.token);
  EXPECT_NE(grant_of(mine_again).lease, mine.lease);
}

// --- Waiting --------------------------------------------------------------------------------------------------------------

TEST_F(CoreTest, WaitersAreServedInOrderOfArrival) {  // Hard case 23.
  Granted holder = takes(exclusive({"a"}));
  std::vector<WaiterId> line;
  for (int i = 0; i < 50; ++i) line.push_back(waits(exclusive({"a"})));
  for (const WaiterId next : line) {
    ASSERT_FALSE(is_told(next));
    releases(holder.lease);
    holder = grant_of(next);
  }
}

TEST_F(CoreTest, AReleaseWakesOnlyWhomItGrants) {  // Hard case 22.
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

TEST_F(CoreTest, ANewcomerDoesNotPassThoseInLine) {
  const Granted reader = takes(shared("a"));
  const WaiterId writer = waits(exclusive({"a"}));
  EXPECT_EQ(said(asks(shared("a"))), "not obtained: busy")
      << "readers cannot starve a writer";  // Hard case 23.
  const WaiterId late_reader = waits(shared("a"));
  releases(reader.lease);
  EXPECT_TRUE(is_granted(writer));
  EXPECT_FALSE(is_told(late_reader));
}

TEST_F(CoreTest, AWaitThatIsOverAnswersTimeout) {
  takes(exclusive({"a"}, 600s));
  const WaiterId waiting = waits(exclusive({"a"}), 5s);
  after(4999ms);
  EXPECT_FALSE(is_told(waiting));
  after(1ms);
  EXPECT_EQ(said(waiting), "not obtained: timeout");
  EXPECT_EQ(inspect("a").waiters, 0U);
}

TEST_F(CoreTest, ALeaseThatEndsInTheSameTickIsStillHandedToWhomItsWaitIsOver) {
  takes(exclusive({"a"}, 5s));
  const WaiterId waiting = waits(exclusive({"a"}), 5s);
  after(5s);
  EXPECT_TRUE(is_granted(waiting));
}

TEST_F(CoreTest, WhoeverTimesOutMakesRoomForThoseBehind) {  // Hard case 18.
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
  EXPECT_FALSE(is_told(gone));
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
  for (int i = 0; i < 1000; ++i) line.push_back(waits(exclusive({"a", "b" + std::to_string(i % 10)})));
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
  options_.waiters_max = 2;
  restart();
  const Granted holder = takes(exclusive({"a"}));
  const WaiterId first = waits(exclusive({"a"}));
  waits(exclusive({"a"}));
  EXPECT_EQ(said(waits(exclusive({"a"}))), "refused: waiters full");
  EXPECT_TRUE(is_granted(asks(exclusive({"b"})))) << "what is free needs no place in line";
  releases(holder.lease);
  EXPECT_TRUE(is_granted(first));
  EXPECT_FALSE(is_told(waits(exclusive({"a"}))));
}

TEST_F(CoreTest, AnAsyncWaiterHearsItsPositionWhereItStandsFurthestBack) {
  takes(exclusive({"a"}));
  waits(exclusive({"a"}));
  waits(exclusive({"a"}));
  Spec spec = exclusive({"b", "a"});
  spec.request = kRequest;
  spec.async = true;
  EXPECT_EQ(said(waits(spec)), "queued at 3");
}

// --- Several locks ----------------------------------------------------------------------------------------------------------

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

TEST_F(CoreTest, AWaiterForEightLocksIsNotStarvedByThoseWhoWantOne) {  // Hard case 24.
  std::vector<std::string> eight;
  std::vector<LeaseId> held;
  for (int i = 0; i < 8; ++i) {
    eight.push_back("lock-" + std::to_string(i));
    held.push_back(takes(exclusive({eight.back()})).lease);
  }
  const WaiterId patient = waits(exclusive(eight));
  std::vector<WaiterId> latecomers;
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_FALSE(is_told(patient));
    latecomers.push_back(waits(exclusive({eight[i]})));
    releases(held[i]);
    EXPECT_FALSE(is_told(latecomers.back())) << "the lock stands idle for who came first";
  }
  releases(grant_of(patient).lease);
  for (const WaiterId waiter : latecomers) EXPECT_TRUE(is_granted(waiter));
}

TEST_F(CoreTest, WhoeverGivesUpSeveralLocksFreesTheLineAtEach) {  // Hard case 18.
  const Granted a = takes(exclusive({"a"}));
  const WaiterId both = waits(exclusive({"a", "b"}));
  const WaiterId behind = waits(exclusive({"b"}));
  EXPECT_FALSE(is_told(behind));
  hangs_up(both);
  EXPECT_TRUE(is_granted(behind)) << describe(a);
}

// --- Shared and limit -------------------------------------------------------------------------------------------------------

TEST_F(CoreTest, ARunOfReadersAtTheHeadIsGrantedTogether) {
  const Granted writer = takes(exclusive({"a"}));
  const WaiterId r1 = waits(shared("a")), r2 = waits(shared("a"));
  const WaiterId w = waits(exclusive({"a"}));
  const WaiterId r3 = waits(shared("a"));
  releases(writer.lease);
  EXPECT_TRUE(is_granted(r1) && is_granted(r2));
  EXPECT_FALSE(is_told(w) || is_told(r3));
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

// --- Break --------------------------------------------------------------------------------------------------------------------

TEST_F(CoreTest, ABrokenLeaseRunsOutAndCannotBeRenewed) {
  const Granted holder = takes(exclusive({"a", "b"}, 10s));
  const WaiterId next = waits(exclusive({"b"}));
  after(4s);
  EXPECT_TRUE(breaks("b", holder.token));
  EXPECT_EQ(events_,
            (std::vector<std::string>{"breaking token 1 exclusive lock a owner owner 1 because stuck",
                                      "breaking token 1 exclusive lock b owner owner 1 because stuck"}));
  commit();
  EXPECT_EQ(describe(renews(holder.lease)), "lost broken token 1");
  EXPECT_TRUE(inspect("a").holders[0].breaking);
  after(5999ms);
  EXPECT_FALSE(is_told(next)) << "so that G3 and G7 hold";
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
  EXPECT_EQ(events_[0], "broken token 1 exclusive lock a owner owner 1 ending broken because stuck");
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

// --- Delay and maximum hold -----------------------------------------------------------------------------------------------------

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
  EXPECT_FALSE(is_told(next));
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
  EXPECT_FALSE(is_told(next));
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

// --- Restarts -------------------------------------------------------------------------------------------------------------------

TEST_F(CoreTest, RestartsNeverTakeALockFromAHolderThatRenews) {  // Hard case 28.
  const Granted holder = takes(exclusive({"a"}, 9s));
  for (int i = 0; i < 20; ++i) {
    after(3s);
    restart();
    const WaiterId rival = waits(exclusive({"a"}));
    EXPECT_FALSE(is_told(rival));
    EXPECT_TRUE(is_granted(asks(exclusive({"free-" + std::to_string(i)}))))
        << "what is free is granted at once";
    after(5999ms);
    EXPECT_EQ(describe(renews(holder.lease)), "renewed, left 9000ms");
  }
}

TEST_F(CoreTest, ADeadHolderCostsOneTtlPerRestartAndNoMore) {  // Hard case 29.
  takes(exclusive({"a"}, 10s));
  for (int i = 0; i < 10; ++i) {
    after(5s);
    restart();
  }
  const WaiterId next = waits(exclusive({"a"}));
  after(9999ms);
  EXPECT_FALSE(is_told(next));
  after(1ms);
  EXPECT_TRUE(is_granted(next));
}

TEST_F(CoreTest, ARestartKeepsEverythingThatAHolderWasGranted) {
  Spec spec = exclusive({"a", "b"});
  spec.owner = "me@here:1";
  spec.meta = {{"job", "nightly"}, {"empty", ""}};
  spec.max_hold = 25s;
  const Granted holder = takes(spec);
  const std::string before = describe(inspect("b"));
  renews(holder.lease);
  restart();
  EXPECT_EQ(describe(inspect("b")), before);
  EXPECT_EQ(core_->history("b", 10).size(), 0U);
  after(9s);
  renews(holder.lease);
  after(9s);
  EXPECT_EQ(describe(renews(holder.lease)), "renewed, left 7000ms") << "MAXHOLD began again";
}

TEST_F(CoreTest, DamagedRecordsAreRefusedNotLoaded) {
  takes(exclusive({"a"}));
  Core fresh;
  for (const auto& [key, value] : disk_) {
    EXPECT_FALSE(fresh.load(key, value.substr(0, value.size() - 1)));
    EXPECT_FALSE(fresh.load("?" + key, value));
  }
}

TEST_F(CoreTest, ALeaseBeyondTheHighWaterIsAContradiction) {  // Rule 10: the store lost a part.
  takes(exclusive({"a"}));
  Core fresh;
  for (const auto& [key, value] : disk_) EXPECT_TRUE(fresh.load(key, value));
  EXPECT_FALSE(fresh.loaded(Token{0}, now_));
}

// --- Reads ----------------------------------------------------------------------------------------------------------------------

TEST_F(CoreTest, HistoryIsNewestFirstUnderEachLockAndBounded) {
  options_.history_epochs = 4;
  restart();
  for (int i = 0; i < 3; ++i) releases(takes(exclusive({"a"})).lease);
  releases(takes(exclusive({"a", "b"})).lease);
  const auto of_a = core_->history("a", 10);
  ASSERT_EQ(of_a.size(), 3U) << "a lease with two locks takes two entries of the ring";
  EXPECT_EQ(of_a[0].token, Token{4});
  EXPECT_EQ(of_a[0].locks, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(of_a[2].token, Token{2});
  EXPECT_EQ(core_->history("a", 1).size(), 1U);
  for (int i = 0; i < 1000; ++i) releases(takes(exclusive({"c"})).lease);
  EXPECT_EQ(core_->history("c", 1000).size(), 4U);
  EXPECT_TRUE(core_->history("a", 10).empty());
}

TEST_F(CoreTest, EveryLockThatStaysIsListedOnceWhateverElseChanges) {
  judged_ = false;
  for (int i = 0; i < 300; ++i) takes(exclusive({"stays/" + std::to_string(i)}));
  std::map<std::string, int> seen;
  std::uint64_t cursor = 0;
  do {
    const LocksPage page = core_->list("stays/", cursor, 7, now_);
    for (const LockView& view : page.locks) ++seen[view.lock];
    cursor = page.cursor;
    releases(takes(exclusive({"comes and goes"})).lease);
    takes(exclusive({"comes/" + std::to_string(cursor)}));
  } while (cursor != 0);
  EXPECT_EQ(seen.size(), 300U);
  for (const auto& [lock, times] : seen) EXPECT_EQ(times, 1) << lock;
}

TEST_F(CoreTest, InspectShowsTheFirstSixteenInLine) {
  takes(exclusive({"a"}));
  for (int i = 0; i < 20; ++i) waits(exclusive({"a"}));
  EXPECT_EQ(inspect("a").waiters, 20U);
  ASSERT_EQ(inspect("a").queue.size(), 16U);
  EXPECT_EQ(inspect("a").queue[0].owner, "owner 2");
}

TEST_F(CoreTest, AFreeLockRemembersTheGreatestTokenItKnew) {
  const Granted first = takes(shared("a")), second = takes(shared("a"));
  releases(second.lease);
  releases(first.lease);
  EXPECT_EQ(inspect("a").last_token, second.token);
  EXPECT_EQ(inspect("never").last_token, std::nullopt);
}

// --- Events ---------------------------------------------------------------------------------------------------------------------

TEST_F(CoreTest, EachChangeIsOneEventPerLock) {
  const Granted first = takes(exclusive({"a", "b"}));
  const WaiterId next = waits(exclusive({"b"}));
  EXPECT_TRUE(events_.empty()) << "queueing is no event";
  releases(first.lease);
  EXPECT_EQ(events_,
            (std::vector<std::string>{"released token 1 exclusive lock a owner owner 1 ending released",
                                      "released token 1 exclusive lock b owner owner 1 ending released",
                                      "granted token 2 exclusive lock b owner owner 2"}));
  commit();
  EXPECT_TRUE(is_granted(next));
  after(10s);
  EXPECT_EQ(events_,
            (std::vector<std::string>{"expired token 2 exclusive lock b owner owner 2 ending expired"}));
}

}  // namespace
}  // namespace pawl::core
