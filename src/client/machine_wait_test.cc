// From the answer to the lease in the caller's hands: late grants (G7), waits, cancels.
#include "client/testlib/machine_fixture.h"

namespace pawl::client {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// --- Late grants (G7) ----------------------------------------------------------------------------

TEST_F(MachineTest, LateGrantIsRenewedBeforeItIsReturned) {
  const CallId call = acquire();
  connect();
  sent();
  now += 12s;
  receive_grant(10s);
  EXPECT_FALSE(complete());
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  const Instant renewal_sent = now;
  now += 1s;
  receive(":10000\r\n");
  const auto held = outcome<GrantedLease>(call);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->deadline, renewal_sent + 9800ms);
}

TEST_F(MachineTest, GrantBelowHalfItsTtlIsRenewedFirst) {
  const CallId call = acquire();
  connect();
  sent();
  now += 4801ms;  // 9.8 s − 4.801 s < 5 s
  receive_grant(10s);
  EXPECT_FALSE(complete());
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  receive(":10000\r\n");
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

TEST_F(MachineTest, GrantWithHalfItsTtlIsReturnedAsIs) {
  const CallId call = acquire();
  connect();
  sent();
  now += 4800ms;
  receive_grant(10s);
  EXPECT_TRUE(outcome<GrantedLease>(call));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(MachineTest, LateGrantThatCannotBeRenewedIsReleased) {
  const CallId call = acquire();
  connect();
  sent();
  now += 12s;
  receive_grant(10s);
  sent();
  receive("-LOST expired\r\n");
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kLeaseLost);
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  receive(":0\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, LateGrantIsConfirmedOnTheNextConnection) {
  const CallId call = acquire();
  connect();
  sent();
  now += 12s;
  receive_grant(10s);
  sent();
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  receive(":10000\r\n");
  EXPECT_EQ(outcome<GrantedLease>(call)->deadline, now + 9800ms);
}

TEST_F(MachineTest, CancelledLateGrantIsReleasedUnrenewed) {
  const CallId call = acquire(0ms, 13s);
  connect();
  sent();
  now += 12s;
  receive_grant(10s);
  sent();
  lose_connection();
  pass(1s);
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnknown);
  connect();
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
}

TEST_F(MachineTest, LateConfirmationsEndInARelease) {
  const CallId call = acquire();
  connect();
  sent();
  now += 12s;
  receive_grant(10s);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
    now += 11s;
    receive(":10000\r\n");
  }
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnavailable);
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
}

// --- Waiting -------------------------------------------------------------------------------------

TEST_F(MachineTest, PushBringsTheGrantOfAWait) {
  const CallId call = acquire(30s);
  connect();
  const std::string asked = sent_one();
  EXPECT_THAT(asked, HasSubstr("WAIT 30000 ASYNC"));
  const Instant first_sent = now;
  receive_queued(3);
  EXPECT_EQ(machine.position(call), 3u);
  now += 20s;
  receive_push(wire::WaitEvent::kGranted, request_of(asked), 10s, 20s);
  const auto held = outcome<GrantedLease>(call);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->deadline, first_sent + 29700ms - 100ms);
}

TEST_F(MachineTest, RenewalsPassWhileAnAcquireWaits) {
  acquire(30s);
  connect();
  receive_queued(1);
  sent();
  const CallId renewal = machine.renew({kLease, 10s}, now);
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  receive(":10000\r\n");
  EXPECT_TRUE(outcome<RenewResult>(renewal));
}

TEST_F(MachineTest, WaitThatTimesOutIsBusy) {
  const CallId call = acquire(30s);
  connect();
  const std::string asked = sent_one();
  receive_queued(1);
  receive_push(wire::WaitEvent::kTimeout, request_of(asked));
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kBusy);
}

TEST_F(MachineTest, SupersededWaitIsRetriedWithTheSameRequestId) {
  const CallId call = acquire(30s);
  connect();
  const std::string asked = sent_one();
  receive_queued(1);
  pass(1s);
  receive_push(wire::WaitEvent::kSuperseded, request_of(asked));
  EXPECT_FALSE(complete());
  const std::string again = sent_one();
  EXPECT_EQ(request_of(again), request_of(asked));
  EXPECT_THAT(again, testing::HasSubstr("WAIT 29000"));
  receive_grant(10s, 900ms);
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

TEST_F(MachineTest, RepeatedlySupersededWaitIsUnknown) {
  const CallId call = acquire(30s);
  connect();
  for (int taken = 0; taken < 4; ++taken) {
    const std::string asked = sent_one();
    receive_queued(1);
    EXPECT_FALSE(complete());
    receive_push(wire::WaitEvent::kSuperseded, request_of(asked));
  }
  EXPECT_THAT(sent(), testing::IsEmpty());
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnknown);
}

TEST_F(MachineTest, DisconnectedWaitIsQueuedAgainForTheRest) {
  acquire(30s);
  connect();
  const std::string first = sent_one();
  receive_queued(1);
  now += 10s;
  lose_connection();
  now = Instant(1'020s);
  connect();
  const std::string second = sent_one();
  EXPECT_EQ(request_of(second), request_of(first));
  EXPECT_THAT(second, HasSubstr("WAIT 10000 ASYNC"));
  lose_connection();
  now += 1h;
  connect();
  EXPECT_THAT(sent_one(), testing::Not(HasSubstr("WAIT")));  // Only whether a grant stands.
}

TEST_F(MachineTest, ProbeFindsADeadConnectionOfAWait) {
  acquire(10min);
  connect();
  const std::string asked = sent_one();
  receive_queued(1);
  EXPECT_EQ(machine.next_timer(), now + 30s);
  pass(30s);
  EXPECT_EQ(sent_one(), "PING");
  receive("+PONG\r\n");
  EXPECT_FALSE(machine.wants_close());
  pass(30s);
  EXPECT_EQ(sent_one(), "PING");
  pass(5s);
  EXPECT_TRUE(machine.wants_close());
  lose_connection();
  connect();
  EXPECT_EQ(request_of(sent_one()), request_of(asked));
}

TEST_F(MachineTest, UnknownPushesAreIgnored) {
  const CallId call = acquire(30s);
  connect();
  receive_queued(1);
  receive_push(wire::WaitEvent::kGranted, "AAAAAAAAAAAAAAAAAAAAAA");
  receive(">2\r\n+invalidate\r\n_\r\n");
  receive(">5\r\n+pawl\r\n+released\r\n+7-12\r\n+disk\r\n%0\r\n");
  EXPECT_FALSE(complete());
  EXPECT_FALSE(machine.wants_close());
  EXPECT_EQ(machine.position(call), 1u);
}

// --- Cancel. Hard case 18 ------------------------------------------------------------------------

TEST_F(MachineTest, CancelledWaitIsWithdrawn) {
  const CallId call = acquire(30s);
  connect();
  const std::string request = request_of(sent_one());
  receive_queued(1);
  machine.cancel(call, now);
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnavailable);
  EXPECT_EQ(sent_one(), "CANCEL " + request);
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, GrantThatCrossesACancelIsReleased) {
  const CallId call = acquire(30s);
  connect();
  const std::string request = request_of(sent_one());
  receive_queued(1);
  machine.cancel(call, now);
  sent();
  receive_push(wire::WaitEvent::kGranted, request);
  receive(":0\r\n");
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, CancelWithoutAWaitReleasesAPossibleGrant) {
  const CallId call = acquire(30s);
  connect();
  const std::string request = request_of(sent_one());
  receive_queued(1);
  machine.cancel(call, now);
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), "CANCEL " + request);
  receive(":0\r\n");
  const std::string again = sent_one();
  EXPECT_EQ(request_of(again), request);
  EXPECT_THAT(again, testing::Not(HasSubstr("WAIT")));
  receive_grant(10s);
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
}

TEST_F(MachineTest, CancelBeforeTheReplyReleasesItsGrant) {
  const CallId call = acquire(30s);
  connect();
  const std::string request = request_of(sent_one());
  machine.cancel(call, now);
  EXPECT_THAT(sent(), IsEmpty());
  receive_queued(1);
  EXPECT_EQ(sent_one(), "CANCEL " + request);
}

TEST_F(MachineTest, CancelBeforeASendLeavesNothing) {
  const CallId call = acquire(30s);
  machine.cancel(call, now);
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnavailable);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, CancelAfterCompletionDoesNothing) {
  const CallId call = acquire();
  connect();
  sent();
  receive_grant(10s);
  machine.cancel(call, now);
  EXPECT_TRUE(outcome<GrantedLease>(call));
  EXPECT_THAT(sent(), IsEmpty());
}

// --- Silence while a call waits ------------------------------------------------------------------

class ReplacingMachineTest : public MachineTest {
 protected:
  // Waits in a queue, with another command in flight.
  void wait_and_ask() {
    replacing.acquire({.locks = {"disk"}, .terms = {.ttl = 10s}, .wait = 1h, .give_up = now + 1h},
                      now);
    replacing.connected(now);
    replacing.received("%1\r\n+server\r\n+pawl\r\n", now);
    std::string queued;
    wire::ReplyWriter reply(queued, wire::Protocol::kResp3);
    wire::write_queued(reply, {1});
    replacing.received(queued, now);
    replacing.limit_answer_timeout(200ms);
    replacing.command({.words = {"STATUS"}, .give_up = now + 1h}, now);
  }

  Machine replacing{random, {.answer_timeout = 4s, .can_replace = true}};
};

TEST_F(ReplacingMachineTest, SilentConnectionWithAWaitIsKeptUntilAnotherAnswers) {
  wait_and_ask();
  now += 200ms;
  replacing.on_timer(now);
  EXPECT_TRUE(replacing.wants_replacement());
  EXPECT_FALSE(replacing.wants_close());
  EXPECT_GT(replacing.next_timer(), now);
  replacing.received("+OK\r\n", now);
  EXPECT_FALSE(replacing.wants_replacement());
}

TEST_F(ReplacingMachineTest, SilentConnectionWithAWaitIsClosedAfterTheWholeTimeout) {
  wait_and_ask();
  now += 200ms;
  replacing.on_timer(now);
  now += 3800ms;
  replacing.on_timer(now);
  EXPECT_TRUE(replacing.wants_close());
}

}  // namespace
}  // namespace pawl::client
