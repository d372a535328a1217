#include "client/keeper.h"

#include "client/testlib/machine_fixture.h"

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class KeeperTest : public MachineTest {
 protected:
  // A lease of 10 s that was granted just now: good until 9.8 s from now.
  LeaseNumber hold(KeepOptions options = {}, std::uint64_t id = 0x22) {
    GrantedLease held{
        {LeaseId{0x11, id}, Token{34}, Token{34}, std::nullopt, 10s, 0ms}, now + 9'800ms, {}};
    return keeper.add(held, options, now);
  }
  void be_connected() {
    machine.command({.words = {"PING"}}, now);
    connect();
    EXPECT_EQ(sent_one(), "PING");
    receive("+PONG\r\n");
    run();
  }
  // Lets machine and keeper do what is due now.
  void run() {
    machine.on_timer(now);
    for (const Completion& done : machine.take_completions()) keeper.on_completion(done, now);
    keeper.on_timer(now);
  }
  void pass(Nanos span) {
    now += span;
    run();
  }
  void answer(std::string_view bytes) {
    receive(bytes);
    run();
  }
  void answer_renewal(const wire::RenewalReply& renewal) {
    std::string bytes;
    wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
    wire::write_renewal(reply, renewal);
    answer(bytes);
  }
  LeaseState state(LeaseNumber lease) { return keeper.status(lease, now).state; }
  std::string reason(LeaseNumber lease) { return keeper.status(lease, now).reason; }
  std::vector<LeaseState> changes() {
    std::vector<LeaseState> states;
    for (const LeaseChange& change : keeper.take_changes()) states.push_back(change.state);
    return states;
  }

  Keeper keeper{machine, random};
};

TEST_F(KeeperTest, RenewsAfterAThirdOfTheTtl) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(2'400ms);
  EXPECT_THAT(sent(), IsEmpty());
  pass(900ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  pass(50ms);
  answer("*1\r\n:10000\r\n");
  // Counted from the send: 10 s less 1 % less a margin of 100 ms, and 50 ms for the way.
  EXPECT_EQ(keeper.status(lease, now).deadline, now - 50ms + 9'900ms - 100ms);
  EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(KeeperTest, DropsASilentConnectionInTimeToRenewOverAnother) {
  be_connected();
  const LeaseNumber lease = hold();
  now = keeper.next_timer();
  run();
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  pass(1'666ms - 1ms);
  EXPECT_FALSE(machine.wants_close());
  pass(1ms);
  EXPECT_TRUE(machine.wants_close());
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  EXPECT_EQ(state(lease), LeaseState::kHeld);
}

TEST_F(KeeperTest, OnlyRenewedLeasesShortenTheAnswerTimeout) {
  be_connected();
  const LeaseNumber lease = hold();
  keeper.release(lease, now + 1s, now);
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  pass(5s - 1ms);
  EXPECT_FALSE(machine.wants_close());
  pass(1ms);
  EXPECT_TRUE(machine.wants_close());
}

TEST_F(KeeperTest, ShortestLeaseLimitsTheBackoff) {
  hold();
  machine.command({.words = {"PING"}}, now);
  for (int attempt = 0; attempt < 10; ++attempt) {
    machine.disconnected("refused", now);
    EXPECT_LE(machine.next_timer(), now + 1'666ms);
    now = machine.next_timer();
    ASSERT_TRUE(machine.wants_connection(now));
  }
}

TEST_F(KeeperTest, ConfiguredAnswerTimeoutIsKept) {
  Keeper patient(machine, random, Keeper::AnswerTimeout::kAsConfigured);
  be_connected();
  patient.add({{LeaseId{0x11, 0x22}, Token{34}, Token{34}, std::nullopt, 10s, 0ms}, now + 9'800ms},
              {}, now);
  now = patient.next_timer();
  patient.on_timer(now);
  machine.on_timer(now + 5s - 1ms);
  EXPECT_FALSE(machine.wants_close());
}

TEST_F(KeeperTest, HundredThousandLeasesTakeAHundredCommands) {
  be_connected();
  for (std::uint64_t i = 0; i < 100'000; ++i) hold({}, i);
  std::size_t commands = 0;
  for (int step = 0; step < 100; ++step) {
    pass(33ms);
    commands += sent().size();
  }
  EXPECT_EQ(keeper.counters().renewal_commands, commands);
  EXPECT_LE(commands, 120u);
  EXPECT_GE(commands, 100'000u / 1024);
}

TEST_F(KeeperTest, UnrenewedLeaseGoesThroughAllStates) {
  const LeaseNumber lease = hold();
  EXPECT_EQ(state(lease), LeaseState::kHeld);
  EXPECT_EQ(reason(lease), "");
  pass(4'799ms);
  EXPECT_EQ(state(lease), LeaseState::kHeld);
  pass(1ms);
  EXPECT_EQ(state(lease), LeaseState::kAtRisk);
  EXPECT_EQ(reason(lease), "its renewal was not answered");
  pass(3'333ms);
  EXPECT_EQ(state(lease), LeaseState::kAtRisk);
  pass(1ms);
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
  pass(1'665ms);
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
  pass(1ms);
  EXPECT_EQ(state(lease), LeaseState::kLost);
  EXPECT_THAT(changes(),
              ElementsAre(LeaseState::kAtRisk, LeaseState::kUncertain, LeaseState::kLost));
  EXPECT_EQ(keeper.counters().lost, 1u);
}

TEST_F(KeeperTest, EveryStateChangeIsOnTheTimer) {
  const LeaseNumber lease = hold();
  for (LeaseState expected : {LeaseState::kAtRisk, LeaseState::kUncertain, LeaseState::kLost}) {
    while (state(lease) != expected) {
      ASSERT_GT(keeper.next_timer(), now - 1ns);
      ASSERT_NE(keeper.next_timer(), kNever);
      now = keeper.next_timer();
      run();
    }
  }
  EXPECT_EQ(keeper.next_timer(), kNever);
}

// Hard case 1.
TEST_F(KeeperTest, FrozenProcessFindsItsLeaseLostBeforeAnyTimer) {
  const LeaseNumber lease = hold();
  now += 11s;
  EXPECT_EQ(keeper.status(lease, now).state, LeaseState::kLost);
}

// Hard cases 1 and 9.
TEST_F(KeeperTest, AnswerReadAfterAFreezeRevivesNothing) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  sent();
  now += 6s;  // Still before the deadline, but uncertain.
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
  answer("*1\r\n:10000\r\n");
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
  pass(10s);
  EXPECT_EQ(state(lease), LeaseState::kLost);
  EXPECT_THAT(sent(), IsEmpty());
}

// Hard case 31.
TEST_F(KeeperTest, DeadlineCountsFromTheSendNotTheAnswer) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  EXPECT_THAT(sent(), testing::SizeIs(1));
  const Instant sent_at = now;
  pass(1'600ms);
  answer("*1\r\n:10000\r\n");
  EXPECT_EQ(keeper.status(lease, now).deadline, sent_at + 9'800ms);
}

TEST_F(KeeperTest, LeaseAtRiskIsHeldAgainAfterARenewal) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  sent();
  pass(1'600ms);
  EXPECT_EQ(state(lease), LeaseState::kAtRisk);
  answer("*1\r\n:10000\r\n");
  EXPECT_EQ(state(lease), LeaseState::kHeld);
  EXPECT_THAT(changes(), ElementsAre(LeaseState::kAtRisk, LeaseState::kHeld));
}

TEST_F(KeeperTest, RenewalLostWithItsConnectionIsSentAgain) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  sent();
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  const Instant sent_at = now;
  answer("*1\r\n:10000\r\n");
  EXPECT_EQ(keeper.status(lease, now).deadline, sent_at + 9'800ms);
}

TEST_F(KeeperTest, FailedRenewalIsRetriedAndGivenAsReason) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  sent();
  answer("-NOPERM not you\r\n");
  EXPECT_EQ(state(lease), LeaseState::kHeld);
  pass(1s);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("-NOPERM not you\r\n");
  pass(900ms);
  EXPECT_EQ(state(lease), LeaseState::kAtRisk);
  EXPECT_THAT(reason(lease), StartsWith("its renewal failed: "));
}

// Hard case 9.
TEST_F(KeeperTest, LeaseThatPawldRefusesToRenewIsLostAtOnce) {
  be_connected();
  const LeaseNumber over = hold({}, 0x22);
  const LeaseNumber live = hold({}, 0x23);
  pass(3'300ms);
  ASSERT_THAT(sent(), testing::SizeIs(1));
  EXPECT_EQ(keeper.counters().renewal_commands, 1u);
  // The order of the answer is that of the command, which jitter decides.
  answer("*2\r\n:-1\r\n:10000\r\n");
  EXPECT_NE(state(over) == LeaseState::kLost, state(live) == LeaseState::kLost);
  const LeaseNumber lost = state(over) == LeaseState::kLost ? over : live;
  EXPECT_EQ(reason(lost), "pawld reports that it is over");
  EXPECT_THAT(changes(), ElementsAre(LeaseState::kLost));
}

TEST_F(KeeperTest, ReasonOfTheEndIsReportedLater) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n:-1\r\n");
  EXPECT_THAT(changes(), ElementsAre(LeaseState::kLost));
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  answer("-LOST broken by ops: host is gone\r\n");
  EXPECT_EQ(reason(lease), "pawld reports that it is over: broken by ops: host is gone");
  const auto explained = keeper.take_changes();
  ASSERT_EQ(explained.size(), 1u);
  EXPECT_TRUE(explained.front().reason_only);
  EXPECT_EQ(keeper.counters().lost, 1u);
  pass(20s);
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(KeeperTest, ForgottenLeaseGetsNoReason) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  sent();
  answer("*1\r\n:-1\r\n");
  keeper.forget(lease);
  EXPECT_THAT(changes(), ElementsAre(LeaseState::kLost));
  answer("-LOST broken\r\n");
  EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(KeeperTest, MalformedMrenewReplyRenewsNothing) {
  be_connected();
  const LeaseNumber lease = hold();
  const Instant deadline = keeper.status(lease, now).deadline;
  pass(3'300ms);
  for (const char* nonsense : {"*2\r\n:10000\r\n:10000\r\n", "*1\r\n+soon\r\n", ":10000\r\n"}) {
    EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText) << nonsense;
    answer(nonsense);
    EXPECT_EQ(keeper.status(lease, now).deadline, deadline);
    pass(1s);
  }
}

TEST_F(KeeperTest, AskThatComesWithARenewalIsReportedOnceWithItsText) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n*2\r\n:10000\r\n:7\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText + " ASKS");
  EXPECT_THAT(keeper.take_asks(), IsEmpty());
  const wire::ReleaseWanted wanted{7, "disk", "bob", "deploy"};
  answer_renewal({10s, wanted});
  const auto asks = keeper.take_asks();
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks.front().lease, lease);
  EXPECT_EQ(asks.front().wanted, wanted);
  EXPECT_EQ(state(lease), LeaseState::kHeld);
  // pawld repeats the number until the lease ends.
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n*2\r\n:10000\r\n:7\r\n");
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_THAT(keeper.take_asks(), IsEmpty());
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n*2\r\n:10000\r\n:8\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText + " ASKS") << "another ask";
}

TEST_F(KeeperTest, AskIsHeardWithALaterRenewalWhenTheAnswerIsLost) {
  be_connected();
  hold();
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n*2\r\n:10000\r\n:7\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText + " ASKS");
  answer("-ERR not now\r\n");
  EXPECT_THAT(keeper.take_asks(), IsEmpty());
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n*2\r\n:10000\r\n:7\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText + " ASKS");
  answer_renewal({10s, wire::ReleaseWanted{7, "disk", "bob", ""}});
  EXPECT_EQ(keeper.take_asks().size(), 1U);
}

// Hard case 10.
TEST_F(KeeperTest, OldRenewalDoesNotAffectTheNextLease) {
  be_connected();
  const LeaseNumber old = hold({}, 0x22);
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  ASSERT_TRUE(keeper.release(old, now + 1s, now));
  keeper.forget(old);
  const LeaseNumber next = hold({}, 0x33);
  answer("*1\r\n:-1\r\n");
  EXPECT_EQ(state(next), LeaseState::kHeld);
  EXPECT_THAT(changes(), IsEmpty());
}

// Hard case 32.
TEST_F(KeeperTest, LeaseWithoutProgressIsNotRenewed) {
  be_connected();
  const LeaseNumber lease = hold({.progress_every = 2s});
  pass(3'300ms);
  EXPECT_THAT(sent(), IsEmpty());
  pass(2s);
  EXPECT_EQ(state(lease), LeaseState::kAtRisk);
  EXPECT_THAT(reason(lease), HasSubstr("no progress reported for 2000 ms"));
  keeper.progress(lease, now);
  run();
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n:10000\r\n");
  EXPECT_EQ(state(lease), LeaseState::kHeld);
}

// Hard case 32.
TEST_F(KeeperTest, ProgressAfterTheLossIsTooLate) {
  be_connected();
  const LeaseNumber lease = hold({.progress_every = 2s});
  pass(8'300ms);
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
  keeper.progress(lease, now);
  run();
  EXPECT_THAT(sent(), IsEmpty());
  pass(1'700ms);
  EXPECT_EQ(state(lease), LeaseState::kLost);
}

TEST_F(KeeperTest, LeaseEndsWhenPawldReachesMaxHold) {
  be_connected();
  const LeaseNumber lease = hold({.max_hold = 12s});
  pass(3'300ms);
  sent();
  answer("*1\r\n:8700\r\n");
  EXPECT_EQ(state(lease), LeaseState::kHeld);
  pass(8'600ms);
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_EQ(state(lease), LeaseState::kLost);
  EXPECT_EQ(reason(lease), "max_hold was reached");
}

TEST_F(KeeperTest, ClientCountsMaxHoldAcrossRestarts) {
  be_connected();
  const LeaseNumber lease = hold({.max_hold = 12s});
  const Instant begun = now;
  pass(3'300ms);
  sent();
  answer("*1\r\n:10000\r\n");
  EXPECT_EQ(keeper.status(lease, now).deadline, begun + 12s);
  pass(8'700ms);
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_EQ(state(lease), LeaseState::kLost);
}

// Hard case 8.
TEST_F(KeeperTest, ReleaseIsRepeatedAndStopsRenewals) {
  be_connected();
  const LeaseNumber lease = hold();
  ASSERT_TRUE(keeper.release(lease, now + 1s, now));
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  EXPECT_EQ(state(lease), LeaseState::kLost);
  EXPECT_EQ(reason(lease), "released");
  lose_connection();
  pass(5s);  // The caller has stopped waiting.
  connect();
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  answer(":1\r\n");
  EXPECT_TRUE(machine.idle());
  EXPECT_EQ(keeper.release(lease, now + 1s, now), std::nullopt);
  EXPECT_THAT(changes(), IsEmpty());
}

// Found by the nemesis: its locks stayed closed for what was left of the TTL.
TEST_F(KeeperTest, BrokenLeaseIsStillReleased) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  sent();
  answer("*1\r\n:-1\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);  // How did it end?
  answer("-LOST broken\r\n");
  ASSERT_EQ(state(lease), LeaseState::kLost);
  ASSERT_TRUE(keeper.release(lease, now + 1s, now));
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  EXPECT_EQ(keeper.release(lease, now + 1s, now), std::nullopt);
  EXPECT_THAT(reason(lease), HasSubstr("broken"));
}

// `pawl run` becomes uncertain when it must send TERM, not at TTL/6.
TEST_F(KeeperTest, UncertainBeforeMovesTheLastRenewal) {
  be_connected();
  const LeaseNumber lease = hold({.uncertain_before = 1s});
  now += 8'799ms;
  EXPECT_EQ(state(lease), LeaseState::kAtRisk);
  now += 1ms;
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
}

TEST_F(KeeperTest, StopRenewingKeepsTheDeadline) {
  be_connected();
  const LeaseNumber lease = hold();
  keeper.stop_renewing(lease);
  pass(9'799ms);
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_EQ(state(lease), LeaseState::kUncertain);
  pass(1ms);
  EXPECT_EQ(state(lease), LeaseState::kLost);
}

TEST_F(KeeperTest, StatusCountsRenewalsAndTheirAnswer) {
  be_connected();
  const LeaseNumber lease = hold();
  pass(3'300ms);
  EXPECT_EQ(sent_one(), "MRENEW ASKS " + kLeaseText);
  answer("*1\r\n:9876\r\n");
  const LeaseStatus status = keeper.status(lease, now);
  EXPECT_EQ(status.renewals, 1u);
  EXPECT_EQ(status.expires_in, 9'876ms);
}

}  // namespace
}  // namespace pawl::client
