// `pawl run` under a clock that the test moves.
#include "cli/run_plan.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using client::kNever;
using client::LeaseStatus;
using Why = RunPlan::Why;

constexpr Instant kStart{1'000s};

LeaseStatus held_until(Instant deadline) {
  return {.state = LeaseState::kHeld, .deadline = deadline};
}

class RunPlanTest : public testing::Test {
 protected:
  static RunTimes times(OnLost on_lost = OnLost::kStop, Millis max_hold = 0ms) {
    return {.ttl = 12s, .kill_after = 2s, .max_hold = max_hold, .on_lost = on_lost};
  }
  static RunPlan plan(const RunTimes& times) { return {times, kStart + 12s, kStart}; }
  // The signals that became due until `until`, with the time of each.
  static std::string signals(RunPlan& plan, Instant until) {
    std::string sent;
    for (Instant at = plan.next_timer(); at <= until; at = plan.next_timer()) {
      const auto due = plan.advance(at);
      const std::string when = std::to_string((at - kStart) / 1ms) + " ";
      if (due.terminate) sent += "TERM@" + when;
      if (due.kill) sent += "KILL@" + when;
      if (!due.terminate && !due.kill) break;
    }
    return sent;
  }
};

// --- With the Keeper -----------------------------------------------------------------------------

TEST_F(RunPlanTest, KeeperRenewsUntilTermIsDue) {
  EXPECT_EQ(keep_options(times()).uncertain_before, 2s);
  EXPECT_EQ(keep_options(times(OnLost::kKill)).uncertain_before, 600ms);
  EXPECT_EQ(keep_options(times(OnLost::kIgnore)).uncertain_before, 0s);
  EXPECT_EQ(keep_options({.ttl = 12s, .kill_after = 0s}).uncertain_before, 600ms);
  EXPECT_EQ(keep_options(times(OnLost::kStop, 20s)).max_hold, 20s);
}

TEST_F(RunPlanTest, LeaseIsNotNeededOnceTheCommandIsStopped) {
  auto run = plan(times());
  EXPECT_TRUE(run.needs_lease());
  EXPECT_TRUE(run.advance(kStart + 10s).terminate);
  EXPECT_FALSE(run.needs_lease());
}

// --- Losing the lease ----------------------------------------------------------------------------

TEST_F(RunPlanTest, UnansweredRenewalsEndInTermThenKill) {  // Hard case 33.
  auto run = plan(times());
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@10000 KILL@11400 ");
  EXPECT_EQ(run.exit_code(0), kExitLost);
}

TEST_F(RunPlanTest, LatestKillIsKnownBeforeItIsDue) {
  auto run = plan(times());
  EXPECT_EQ(run.latest_kill(), kStart + 11400ms);
  run.on_lease(held_until(kStart + 16s), kStart + 4s);
  EXPECT_EQ(run.latest_kill(), kStart + 15400ms);
  auto ignoring = plan(times(OnLost::kIgnore));
  EXPECT_EQ(ignoring.latest_kill(), client::kNever);
  run.command_ended(false, kStart + 5s);
  EXPECT_EQ(run.latest_kill(), client::kNever);
}

TEST_F(RunPlanTest, AnsweredRenewalMovesTheDeadline) {
  auto run = plan(times());
  run.on_lease(held_until(kStart + 16s), kStart + 4s);
  EXPECT_FALSE(run.advance(kStart + 4s).terminate);
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@14000 KILL@15400 ");
}

TEST_F(RunPlanTest, ShortTtlKeeps100MsForTheKill) {
  RunPlan run({.ttl = 1s, .kill_after = 166ms}, kStart + 970ms, kStart);
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@804 KILL@870 ");
}

TEST_F(RunPlanTest, KillAfterBelowTheGapMeansKillOnly) {
  RunPlan run({.ttl = 12s, .kill_after = 0s}, kStart + 12s, kStart);
  EXPECT_EQ(signals(run, kStart + 1h), "KILL@11400 ");
}

TEST_F(RunPlanTest, KillsFirstWhenItWakesPastTheDeadline) {  // Hard case 1.
  auto run = plan(times());
  const auto due = run.advance(kStart + 1h);
  EXPECT_TRUE(due.kill);
  EXPECT_FALSE(due.terminate);
  run.command_ended(false, kStart + 1h);
  EXPECT_EQ(run.exit_code(0), kExitLost);  // Whether CMD ended in time is not known.
}

TEST_F(RunPlanTest, RenewalAfterTermChangesNothing) {
  auto run = plan(times());
  EXPECT_EQ(signals(run, kStart + 10s), "TERM@10000 ");
  run.on_lease(held_until(kStart + 20s), kStart + 10s);
  EXPECT_EQ(signals(run, kStart + 1h), "KILL@11400 ");
  EXPECT_EQ(run.exit_code(0), kExitLost);
}

TEST_F(RunPlanTest, RefusedLeaseStopsTheCommandAtOnce) {
  auto run = plan(times());
  run.on_lease({.state = LeaseState::kLost, .deadline = kStart + 12s}, kStart + 4s);
  EXPECT_TRUE(run.advance(kStart + 4s).terminate);
  EXPECT_EQ(signals(run, kStart + 1h), "KILL@6000 ");
  EXPECT_EQ(run.exit_code(0), kExitLost);
}

TEST_F(RunPlanTest, UncertainLeaseKeepsTheTimesOfTermAndKill) {
  auto run = plan(times());
  run.on_lease({.state = LeaseState::kUncertain, .deadline = kStart + 12s}, kStart + 10s);
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@10000 KILL@11400 ");
}

TEST_F(RunPlanTest, OnLostKillSendsNoTerm) {
  auto run = plan(times(OnLost::kKill));
  EXPECT_EQ(signals(run, kStart + 1h), "KILL@11400 ");
  auto refused = plan(times(OnLost::kKill));
  refused.on_lease({.state = LeaseState::kLost, .deadline = kStart + 12s}, kStart + 4s);
  EXPECT_TRUE(refused.advance(kStart + 4s).kill);
}

TEST_F(RunPlanTest, OnLostIgnoreKeepsTheCommandAndItsExitCode) {
  auto run = plan(times(OnLost::kIgnore));
  const auto due = run.advance(kStart + 12s);
  EXPECT_FALSE(due.kill || due.terminate);
  EXPECT_EQ(run.why(), Why::kLost);
  EXPECT_FALSE(run.needs_lease());
  EXPECT_EQ(run.next_timer(), kNever);
  EXPECT_EQ(run.exit_code(7), 7);
}

// --- --max-hold ----------------------------------------------------------------------------------

TEST_F(RunPlanTest, MaxHoldStopsTheCommand) {  // Hard case 32.
  auto run = plan(times(OnLost::kIgnore, 20s));
  run.on_lease(held_until(kStart + 16s), kStart + 4s);
  LeaseStatus capped = held_until(kStart + 19s);  // pawld answers the time that is left.
  capped.final = true;
  run.on_lease(capped, kStart + 8s);
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@17000 KILL@18400 ");
  EXPECT_EQ(run.exit_code(0), kExitMaxHold);
}

// pawld's count starts again when it restarts.
TEST_F(RunPlanTest, MaxHoldCountsOnOurClockToo) {
  auto run = plan(times(OnLost::kStop, 20s));
  run.on_lease(held_until(kStart + 40s), kStart + 4s);
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@18000 KILL@19400 ");
  EXPECT_EQ(run.exit_code(0), kExitMaxHold);
}

TEST_F(RunPlanTest, MaxHoldStopsTheCommandAlsoAfterAnIgnoredLoss) {
  auto run = plan(times(OnLost::kIgnore, 20s));
  run.on_lease({.state = LeaseState::kLost, .deadline = kStart + 12s}, kStart + 4s);
  EXPECT_EQ(signals(run, kStart + 1h), "TERM@18000 KILL@19400 ");
}

// --- The end of the command ----------------------------------------------------------------------

TEST_F(RunPlanTest, ProcessesLeftBehindAreStoppedBeforeTheRelease) {
  auto run = plan(times());
  run.command_ended(true, kStart + 1s);
  EXPECT_TRUE(run.advance(kStart + 1s).terminate);
  EXPECT_EQ(signals(run, kStart + 1h), "KILL@3000 ");
  EXPECT_EQ(run.exit_code(3), 3);
}

TEST_F(RunPlanTest, EndedCommandLeavesNothingToDo) {
  auto run = plan(times());
  run.command_ended(false, kStart + 1s);
  EXPECT_EQ(run.next_timer(), kNever);
  EXPECT_EQ(run.exit_code(3), 3);
}

TEST(WaitPlan, WaitsInPiecesOfAtMostOneHour) {
  const WaitPlan never(0ms, kStart), some(90min, kStart), always(std::nullopt, kStart);
  EXPECT_EQ(never.next_wait(kStart), 0ms);
  EXPECT_FALSE(never.should_retry(Code::kBusy, kStart));
  EXPECT_EQ(some.next_wait(kStart), limits::kWaitMax);
  EXPECT_TRUE(some.should_retry(Code::kBusy, kStart + 1h));
  EXPECT_EQ(some.next_wait(kStart + 1h), 30min);
  EXPECT_FALSE(some.should_retry(Code::kBusy, kStart + 90min));
  EXPECT_EQ(always.next_wait(kStart + 9h), limits::kWaitMax);
  EXPECT_TRUE(always.should_retry(Code::kBusy, kStart + 9h));
}

TEST(WaitPlan, RetriesALostLeaseButNotARefusal) {
  const WaitPlan always(std::nullopt, kStart);
  EXPECT_TRUE(always.should_retry(Code::kLeaseLost, kStart));
  EXPECT_FALSE(always.should_retry(Code::kDenied, kStart));
  EXPECT_FALSE(always.should_retry(Code::kUnknown, kStart));
}

// --- --max-stopped -------------------------------------------------------------------------------

TEST_F(RunPlanTest, ACommandThatIsStoppedTooLongIsEnded) {
  RunTimes limited = times();
  limited.max_stopped = 5s;
  auto run = plan(limited);
  run.command_stopped(kStart + 1s);
  EXPECT_EQ(run.next_timer(), kStart + 6s);
  EXPECT_EQ(signals(run, kStart + 60s), "TERM@6000 KILL@8000 ");
  EXPECT_EQ(run.why(), Why::kMaxStopped);
  EXPECT_EQ(run.exit_code(0), kExitMaxHold);
}

TEST_F(RunPlanTest, ACommandThatIsContinuedInTimeIsNotEnded) {
  RunTimes limited = times();
  limited.max_stopped = 5s;
  auto run = plan(limited);
  run.command_stopped(kStart + 1s);
  run.command_continued();
  EXPECT_EQ(run.next_timer(), kStart + 10s) << "only when the lease ends";
}

TEST_F(RunPlanTest, WithoutMaxStoppedAStoppedCommandIsLeftAlone) {
  auto run = plan(times());
  run.command_stopped(kStart + 1s);
  EXPECT_EQ(run.next_timer(), kStart + 10s);
}

}  // namespace
}  // namespace pawl::cli
