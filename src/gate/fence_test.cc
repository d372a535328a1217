// One fence, rule by rule. The random schedules are in schedules_test.cc.
#include "gate/fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/fences.h"

namespace pawl::gate {
namespace {

using namespace std::chrono_literals;

class FenceTest : public ::testing::Test {
 protected:
  // What the fence asks for, as text: "forward 1", "stale 2", "give up 3", "mark 34 open".
  using Texts = std::vector<std::string>;
  Texts take() {
    Texts texts;
    for (const Action& action : std::exchange(actions, {})) {
      const std::string id = std::to_string(action.request.value);
      switch (action.type) {
        case Action::Type::kForward:
          texts.push_back("forward " + id);
          break;
        case Action::Type::kRefuse:
          texts.push_back(std::string(to_text(action.verdict)) + " " + id);
          break;
        case Action::Type::kGiveUp:
          texts.push_back("give up " + id);
          break;
        case Action::Type::kBusy:
          texts.push_back("busy " + id);
          break;
        case Action::Type::kWriteMark:
          texts.push_back("mark " + std::to_string(action.mark.token.value) +
                          (action.mark.open ? " open" : " closed"));
      }
    }
    return texts;
  }
  Texts arrive(std::uint64_t id, std::uint64_t token, Kind kind = Kind::kWrite) {
    fence.arrive(RequestId{id}, Token{token}, kind, now, actions);
    return take();
  }
  Texts mark_written() {
    fence.mark_written(now, actions);
    return take();
  }
  Texts answered(std::uint64_t id) {
    fence.answered(RequestId{id}, now, actions);
    return take();
  }
  Texts pass(Nanos time) {
    now += time;
    fence.on_time(now, actions);
    return take();
  }
  // Forwards request 1 under token 33.
  void use_33() {
    arrive(1, 33);
    mark_written();
  }

  FenceSettings settings;
  Fence fence{settings, Mark{}};
  Actions actions;
  Instant now{1h};
};

TEST_F(FenceTest, TheFirstForwardWaitsForItsMark) {
  EXPECT_EQ(arrive(1, 33), Texts{"mark 33 open"});
  EXPECT_EQ(mark_written(), Texts{"forward 1"});
}

TEST_F(FenceTest, EqualTokensRunSideBySideWithoutAnotherMark) {
  use_33();
  EXPECT_EQ(arrive(2, 33), Texts{"forward 2"});
}

TEST_F(FenceTest, AGreaterTokenWaitsForTheDrainThenForItsMark) {
  use_33();
  EXPECT_EQ(arrive(2, 34), Texts{});
  EXPECT_EQ(answered(1), Texts{"mark 34 open"});
  EXPECT_EQ(mark_written(), Texts{"forward 2"});
}

TEST_F(FenceTest, ALowerTokenIsRefusedOnceAGreaterOneHasArrived) {
  use_33();
  arrive(2, 34);
  EXPECT_EQ(arrive(3, 33), Texts{"stale 3"});
}

TEST_F(FenceTest, AWaitingRequestIsRefusedWhenAGreaterTokenArrives) {
  use_33();
  arrive(2, 34);
  EXPECT_EQ(arrive(3, 35), Texts{"stale 2"});
  EXPECT_EQ(answered(1), Texts{"mark 35 open"});
}

TEST_F(FenceTest, ATokenThatArrivesWhileALowerMarkIsWrittenGetsItsOwn) {
  EXPECT_EQ(arrive(1, 33), Texts{"mark 33 open"});
  EXPECT_EQ(arrive(2, 34), Texts{"stale 1"});
  EXPECT_EQ(mark_written(), Texts{"mark 34 open"});
  EXPECT_EQ(mark_written(), Texts{"forward 2"});
}

TEST_F(FenceTest, AWaitEndsAfterTheDrainWait) {
  use_33();
  arrive(2, 34);
  EXPECT_EQ(fence.next_time(), now + 5s);
  EXPECT_EQ(pass(5s), Texts{"give up 2"});
  EXPECT_EQ(arrive(3, 33), Texts{"stale 3"});  // All the same.
}

TEST_F(FenceTest, AForwardThatTimedOutIsInFlightUntilItsLateAnswer) {
  use_33();
  fence.timed_out(RequestId{1});
  EXPECT_EQ(arrive(2, 34), Texts{});
  EXPECT_EQ(fence.view().unknown, 1u);
  EXPECT_EQ(answered(1), Texts{"mark 34 open"});
}

TEST_F(FenceTest, ALostForwardIsInFlightUntilAnOperatorSettlesIt) {
  use_33();
  fence.lost(RequestId{1});
  EXPECT_EQ(answered(1), Texts{});
  EXPECT_EQ(arrive(2, 34), Texts{});
  EXPECT_EQ(fence.settle(now, actions), 1u);
  EXPECT_EQ(take(), Texts{"mark 34 open"});
}

TEST_F(FenceTest, SettlingDoesNotTouchForwardsThatMayBeAnswered) {
  use_33();
  arrive(2, 33);
  fence.lost(RequestId{1});
  arrive(3, 34);
  EXPECT_EQ(fence.settle(now, actions), 1u);
  EXPECT_EQ(take(), Texts{});
  EXPECT_EQ(answered(2), Texts{"mark 34 open"});
}

TEST_F(FenceTest, AnIdleMarkIsClosedAndKeepsItsToken) {
  use_33();
  EXPECT_EQ(answered(1), Texts{});
  EXPECT_EQ(pass(999ms), Texts{});
  EXPECT_EQ(pass(1ms), Texts{"mark 33 closed"});
  EXPECT_EQ(arrive(2, 33), Texts{});  // Not before the closed mark is on disk,
  EXPECT_EQ(mark_written(), Texts{"mark 33 open"});
  EXPECT_EQ(mark_written(), Texts{"forward 2"});
  EXPECT_EQ(arrive(3, 32), Texts{"stale 3"});
}

TEST_F(FenceTest, AnOpenMarkAfterACrashIsInFlight) {
  Fence recovered(settings, Mark{Token{33}, true});
  recovered.arrive(RequestId{1}, Token{34}, Kind::kWrite, now, actions);
  EXPECT_EQ(take(), Texts{});
  recovered.arrive(RequestId{2}, Token{32}, Kind::kWrite, now, actions);
  EXPECT_EQ(take(), Texts{"stale 2"});
  EXPECT_EQ(recovered.settle(now, actions), 1u);
  EXPECT_EQ(take(), Texts{"mark 34 open"});
}

TEST_F(FenceTest, TheTokenOfAnOpenMarkAfterACrashGoesOn) {
  Fence recovered(settings, Mark{Token{33}, true});
  recovered.arrive(RequestId{1}, Token{33}, Kind::kWrite, now, actions);
  EXPECT_EQ(take(), Texts{"forward 1"});
}

TEST_F(FenceTest, AReadUnderATokenAdvancesTheFenceFirst) {
  use_33();
  EXPECT_EQ(arrive(2, 34, Kind::kRead), Texts{});
  EXPECT_EQ(answered(1), Texts{"mark 34 open"});
  EXPECT_EQ(mark_written(), Texts{"forward 2"});
  EXPECT_EQ(arrive(3, 33), Texts{"stale 3"});
}

TEST_F(FenceTest, AReadIsNotInFlight) {
  use_33();
  EXPECT_EQ(arrive(2, 33, Kind::kRead), Texts{"forward 2"});
  arrive(3, 34);
  EXPECT_EQ(answered(1), Texts{"mark 34 open"});
}

TEST_F(FenceTest, AWithdrawnRequestIsNotForwarded) {
  use_33();
  arrive(2, 34);
  fence.leave(RequestId{2});
  EXPECT_EQ(answered(1), Texts{});
}

TEST_F(FenceTest, TooManyThatWaitAreTurnedAway) {
  settings.waiting_max = 1;
  use_33();
  EXPECT_EQ(arrive(2, 34), Texts{});
  EXPECT_EQ(arrive(3, 34), Texts{"busy 3"});
}

TEST_F(FenceTest, ATokenFarAheadIsRefusedAndMovesNothing) {
  use_33();
  EXPECT_EQ(arrive(2, 34 + settings.step_max), Texts{"ahead 2"});
  EXPECT_EQ(arrive(3, 33), Texts{"forward 3"});
}

TEST_F(FenceTest, AStopEndsWaitsAndClosesTheMarkAfterTheDrain) {
  use_33();
  arrive(2, 34);
  fence.stop(now, actions);
  EXPECT_EQ(take(), Texts{"give up 2"});
  EXPECT_EQ(answered(1), Texts{"mark 33 closed"});
  EXPECT_FALSE(fence.is_quiet());
  mark_written();
  EXPECT_TRUE(fence.is_quiet());
}

TEST_F(FenceTest, ShadowForwardsEverythingAtOnceAndJudgesIt) {
  settings.enforce = false;
  EXPECT_EQ(arrive(1, 33), (Texts{"forward 1", "mark 33 open"}));
  fence.arrive(RequestId{2}, Token{32}, Kind::kWrite, now, actions);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].verdict, Verdict::kStale);
  EXPECT_EQ(take(), Texts{"forward 2"});
  EXPECT_EQ(fence.max(), Token{33});
}

TEST(FencesTest, NoMoreResourcesThanTheLimit) {
  FenceSettings settings;
  Fences fences(settings, 1);
  EXPECT_TRUE(fences.find_or_add("/accounts/7"));
  EXPECT_TRUE(fences.find_or_add("/accounts/7"));
  const auto second = fences.find_or_add("/accounts/8");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy);
}

TEST(FencesTest, TheFenceThatIsDueFirstComesFirst) {
  FenceSettings settings;
  Fences fences(settings, 10);
  Actions actions;
  for (const char* name : {"/b", "/a"}) {
    NamedFence& fence = **fences.find_or_add(name);
    const Instant now{name == std::string("/a") ? 2h : 1h};
    fence.fence.arrive(RequestId{1}, Token{1}, Kind::kWrite, now, actions);
    fences.reschedule(fence);
  }
  EXPECT_EQ(fences.next_time(), Instant{1h} + settings.drain_wait);
  EXPECT_EQ(fences.due(Instant{1h}), nullptr);
  EXPECT_EQ(fences.due(Instant{3h})->name, "/b");
}

}  // namespace
}  // namespace pawl::gate
