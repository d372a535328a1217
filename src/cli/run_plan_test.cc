// `pawl run` under a clock that the test moves.
#include "cli/run_plan.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using client::kNever;
using Why = RunPlan::Why;

constexpr Instant kStart{1'000s};

class RunPlanTest : public testing::Test {
 protected:
  static RunTimes times(OnLost on_lost = OnLost::kStop, Millis max_hold = 0ms) {
    return {.ttl = 12s, .kill_after = 2s, .max_hold = max_hold, .on_lost = on_lost};
  }
  RunPlan plan(const RunTimes& times) { return {times, kStart + 12s, kStart, random}; }
  // Everything that became due on the way to `until`, with the time of each.
  static std::string story(RunPlan& plan, Instant until) {
    std::string told;
    for (Instant at = plan.next_timer(); at <= until; at = plan.next_timer()) {
      const auto due = plan.advance(at);
      const std::string when = std::to_string((at - kStart) / 1ms) + " ";
      if (due.renew) told += "renew ";
      if (due.terminate) told += "TERM@" + when;
      if (due.kill) told += "KILL@" + when;
      if (!due.renew && !due.terminate && !due.kill) break;
    }
    return told;
  }
  SeededRandom random{3};
};

TEST_F(RunPlanTest, RenewsWithinAThirdOfTheTtlAndNotAllAtOnce) {
  bool differs = false;
  Instant first{};
  for (int i = 0; i < 100; ++i) {
    const Instant at = plan(times()).next_timer();
    EXPECT_LE(at, kStart + 4s);
    EXPECT_GE(at, kStart + 3400ms);
    differs = differs || (first != Instant{} && at != first);
    first = at;
  }
  EXPECT_TRUE(differs);
}

TEST_F(RunPlanTest, UnansweredRenewalsEndInTermThenKillBeforeTheDeadline) {  // Hard case 33.
  auto run = plan(times());
  EXPECT_EQ(story(run, kStart + 1h), "renew TERM@10000 KILL@11400 ");
  EXPECT_EQ(run.exit_code(0), kExitLost);
}

TEST_F(RunPlanTest, AnAnsweredRenewalMovesTheDeadline) {
  auto run = plan(times());
  EXPECT_EQ(story(run, kStart + 4s), "renew ");
  run.renewed(kStart + 16s, 12s, kStart + 4s);
  EXPECT_FALSE(run.advance(kStart + 4s).terminate);
  EXPECT_EQ(story(run, kStart + 1h), "renew TERM@14000 KILL@15400 ");
}

TEST_F(RunPlanTest, AShortTtlKeepsAHundredMillisecondsForTheKill) {
  RunPlan run({.ttl = 1s, .kill_after = 166ms}, kStart + 970ms, kStart, random);
  EXPECT_EQ(story(run, kStart + 1h), "renew TERM@804 KILL@870 ");
}

TEST_F(RunPlanTest, AKillAfterBelowTheGapMeansKillAtOnce) {
  RunPlan run({.ttl = 12s, .kill_after = 0s}, kStart + 12s, kStart, random);
  EXPECT_EQ(story(run, kStart + 1h), "renew KILL@11400 ");
}

TEST_F(RunPlanTest, WhoWakesPastTheDeadlineKillsBeforeAnythingElse) {  // Hard case 1.
  auto run = plan(times());
  const auto due = run.advance(kStart + 1h);
  EXPECT_TRUE(due.kill);
  EXPECT_FALSE(due.terminate || due.renew);
  run.command_ended(false, kStart + 1h);
  EXPECT_EQ(run.exit_code(0), kExitLost);  // That CMD ended in time cannot be known.
}

TEST_F(RunPlanTest, ALateRenewalTakesNothingBackOnceTermIsSent) {
  auto run = plan(times());
  EXPECT_EQ(story(run, kStart + 10s), "renew TERM@10000 ");
  run.renewed(kStart + 20s, 12s, kStart + 10s);
  EXPECT_EQ(story(run, kStart + 1h), "KILL@11400 ");
  EXPECT_EQ(run.exit_code(0), kExitLost);
}

TEST_F(RunPlanTest, ARenewalThatFailsWithoutAnAnswerIsTriedAgainSoon) {
  auto run = plan(times());
  EXPECT_EQ(story(run, kStart + 4s), "renew ");
  run.renewal_failed(Code::kUnavailable, kStart + 5s);
  EXPECT_EQ(run.next_timer(), kStart + 5s + 600ms);
  EXPECT_TRUE(run.advance(kStart + 5600ms).renew);
}

TEST_F(RunPlanTest, ALeaseThatPawldCallsOverIsStoppedAtOnce) {
  auto run = plan(times());
  EXPECT_EQ(story(run, kStart + 4s), "renew ");
  run.renewal_failed(Code::kLeaseLost, kStart + 4s);
  const auto due = run.advance(kStart + 4s);
  EXPECT_TRUE(due.terminate);
  EXPECT_EQ(story(run, kStart + 1h), "KILL@6000 ");
  EXPECT_EQ(run.exit_code(0), kExitLost);
}

TEST_F(RunPlanTest, OnLostKillSendsNoTerm) {
  auto run = plan(times(OnLost::kKill));
  EXPECT_EQ(story(run, kStart + 1h), "renew KILL@11400 ");
  auto told = plan(times(OnLost::kKill));
  told.renewal_failed(Code::kLeaseLost, kStart + 4s);
  EXPECT_TRUE(told.advance(kStart + 4s).kill);
}

TEST_F(RunPlanTest, OnLostIgnoreLetsTheCommandRunAndKeepsItsExitCode) {
  auto run = plan(times(OnLost::kIgnore));
  EXPECT_EQ(story(run, kStart + 4s), "renew ");
  const auto due = run.advance(kStart + 12s);
  EXPECT_FALSE(due.kill || due.terminate || due.renew);
  EXPECT_EQ(run.why(), Why::kLost);
  EXPECT_EQ(run.next_timer(), kNever);
  EXPECT_EQ(run.exit_code(7), 7);
}

TEST_F(RunPlanTest, MaxHoldStopsAWorkerThatRenewsForEver) {  // Hard case 32.
  auto run = plan(times(OnLost::kIgnore, 20s));
  EXPECT_EQ(story(run, kStart + 4s), "renew ");
  run.renewed(kStart + 16s, 12s, kStart + 4s);
  EXPECT_EQ(story(run, kStart + 9s), "renew ");
  run.renewed(kStart + 19s, 11s, kStart + 8s);  // pawld answers what is left.
  EXPECT_EQ(story(run, kStart + 1h), "TERM@17000 KILL@18400 ");
  EXPECT_EQ(run.exit_code(0), kExitMaxHold);
}

TEST_F(RunPlanTest,
       MaxHoldCountsOnOurOwnClockToo) {  // pawld's count starts again when it restarts.
  auto run = plan(times(OnLost::kStop, 20s));
  EXPECT_TRUE(run.advance(kStart + 4s).renew);
  run.renewed(kStart + 40s, 12s, kStart + 4s);
  EXPECT_TRUE(run.advance(kStart + 9s).renew);
  EXPECT_EQ(story(run, kStart + 1h), "TERM@18000 KILL@19400 ");
  EXPECT_EQ(run.exit_code(0), kExitMaxHold);
}

TEST_F(RunPlanTest, WhatTheCommandLeftBehindIsStoppedBeforeTheLockIsGivenBack) {
  auto run = plan(times());
  run.command_ended(true, kStart + 1s);
  EXPECT_TRUE(run.advance(kStart + 1s).terminate);
  EXPECT_EQ(story(run, kStart + 1h), "KILL@3000 ");
  EXPECT_EQ(run.exit_code(3), 3);
}

TEST_F(RunPlanTest, ACommandThatEndsByItselfLeavesNothingToDo) {
  auto run = plan(times());
  run.command_ended(false, kStart + 1s);
  EXPECT_EQ(run.next_timer(), kNever);
  EXPECT_EQ(run.exit_code(3), 3);
}

TEST_F(RunPlanTest, AGrantWithLittleLeftIsRenewedInTime) {
  RunPlan run(times(), kStart + 4s, kStart, random);
  EXPECT_LE(run.next_timer(), kStart + 1s);
}

TEST(WaitPlan, WaitsForWhatIsLeftAndForEverInPiecesOfOneHour) {
  const WaitPlan never(0ms, kStart), some(90min, kStart), always(std::nullopt, kStart);
  EXPECT_EQ(never.next_wait(kStart), 0ms);
  EXPECT_FALSE(never.again(Code::kBusy, kStart));
  EXPECT_EQ(some.next_wait(kStart), limits::kWaitMax);
  EXPECT_TRUE(some.again(Code::kBusy, kStart + 1h));
  EXPECT_EQ(some.next_wait(kStart + 1h), 30min);
  EXPECT_FALSE(some.again(Code::kBusy, kStart + 90min));
  EXPECT_EQ(always.next_wait(kStart + 9h), limits::kWaitMax);
  EXPECT_TRUE(always.again(Code::kBusy, kStart + 9h));
}

TEST(WaitPlan, ALeaseLostBeforeItWasHandedOutIsAskedForAnewAndARefusalIsNot) {
  const WaitPlan always(std::nullopt, kStart);
  EXPECT_TRUE(always.again(Code::kLeaseLost, kStart));
  EXPECT_FALSE(always.again(Code::kDenied, kStart));
  EXPECT_FALSE(always.again(Code::kUnknown, kStart));
}

}  // namespace
}  // namespace pawl::cli
