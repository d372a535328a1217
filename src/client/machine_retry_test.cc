// A lost connection loses nothing (G5), and every error says what may be concluded.
#include <set>

#include "client/testlib/machine_fixture.h"

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// --- Lost connections. Hard cases 2, 3 -----------------------------------------------------------

TEST_F(MachineTest, RetryKeepsTheRequestIdAndTheFirstSendTime) {
  const CallId call = acquire();
  connect();
  const std::string first = sent_one();
  const Instant first_sent = now;
  now += 2s;
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), first);  // the same id, locks and TTL
  receive_grant(10s);
  const auto held = outcome<GrantedLease>(call);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->request, request_of(first));
  EXPECT_EQ(held->deadline, first_sent + 9900ms - 100ms);
}

TEST_F(MachineTest, ClockStartsAtTheFirstRealSend) {
  const CallId call = acquire();
  machine.disconnected("refused", now);
  now += 30s;
  connect();
  const Instant first_sent = now;
  receive_grant(10s);
  EXPECT_EQ(outcome<GrantedLease>(call)->deadline, first_sent + 9800ms);
}

TEST_F(MachineTest, TenLostConnectionsAreOneRequestId) {
  acquire(30s);
  std::set<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    connect();
    ids.insert(request_of(sent_one()));
    lose_connection();
  }
  EXPECT_EQ(ids.size(), 1u);
}

TEST_F(MachineTest, UncertainStoreIsRetriedWithTheSameRequestId) {
  const CallId call = acquire();
  connect();
  const std::string first = sent_one();
  receive("-UNCERTAIN ask again\r\n");
  EXPECT_FALSE(complete());
  EXPECT_THAT(sent(), IsEmpty());  // not in a tight loop
  pass(100ms);
  EXPECT_EQ(sent_one(), first);
  receive_grant(10s);
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

TEST_F(MachineTest, LoadingIsRetried) {
  const CallId call = machine.command({.words = {"INSPECT", "disk"}, .give_up = now + 1h}, now);
  connect();
  sent();
  receive("-LOADING reading its data\r\n");
  pass(100ms);
  EXPECT_EQ(sent_one(), "INSPECT disk");
  receive("+fine\r\n");
  EXPECT_TRUE(outcome<wire::Value>(call));
}

TEST_F(MachineTest, LoadingUntilTheTimeoutIsUnavailable) {
  const CallId call = acquire(0ms, 1s);
  connect();
  receive("-LOADING reading its data\r\n");
  pass(1s);
  const auto held = outcome<GrantedLease>(call);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_THAT(held.error().detail, HasSubstr("LOADING"));
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, LoadingAfterASendIsUnknown) {
  const CallId call = acquire(0ms, 10s);
  connect();
  lose_connection();
  connect();
  receive("-LOADING reading its data\r\n");
  pass(10s);
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnknown);
}

TEST_F(MachineTest, RetriedRenewalCountsFromTheAnsweredSend) {
  const CallId call = machine.renew({kLease, 10s}, now);
  connect();
  sent();
  now += 3s;
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  const Instant second_send = now;
  now += 1s;
  receive(":10000\r\n");
  EXPECT_EQ(outcome<RenewResult>(call)->deadline, second_send + 9800ms);
}

TEST_F(MachineTest, RenewingAnEndedLeaseIsLost) {
  const CallId call = machine.renew({kLease, 10s}, now);
  connect();
  receive("-LOST expired\r\n");
  const auto renewed = outcome<RenewResult>(call);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Code::kLeaseLost);
  EXPECT_THAT(renewed.error().detail, HasSubstr("expired"));
}

TEST_F(MachineTest, RenewalAnsweredTooLateIsSentAgain) {
  const CallId call = machine.renew({kLease, 10s, now + 1h}, now);
  connect();
  sent();
  now += 9900ms;
  receive(":10000\r\n");
  EXPECT_FALSE(complete());
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  receive(":10000\r\n");
  EXPECT_EQ(outcome<RenewResult>(call)->deadline, now + 9800ms);
}

// Hard case 8.
TEST_F(MachineTest, ReleaseIsRepeatedUntilConfirmed) {
  const CallId call = machine.release({kLease, 10s, now + 1h}, now);
  for (int i = 0; i < 3; ++i) {
    connect();
    EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
    lose_connection();
  }
  connect();
  receive(":0\r\n");  // One of the lost ones did it.
  EXPECT_FALSE(outcome<ReleaseResult>(call)->was_live);
}

TEST_F(MachineTest, AbandonedReleaseIsRepeatedForTheTtl) {
  const CallId call = machine.release({kLease, 10s, now + 1s}, now);
  connect();
  sent();
  pass(1s);
  EXPECT_EQ(outcome<ReleaseResult>(call).error().code, Code::kUnknown);
  lose_connection();
  EXPECT_FALSE(machine.idle());
  connect();
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  pass(20s);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, LostReplyOfAnUnrepeatableCommandIsUnknown) {
  const CallId call = machine.command({.words = {"RAISE", "99", "REASON", "x"},
                                       .repeat = CommandCall::Repeat::kForbidden,
                                       .give_up = now + 1h},
                                      now);
  connect();
  sent();
  lose_connection();
  EXPECT_EQ(outcome<wire::Value>(call).error().code, Code::kUnknown);
}

TEST_F(MachineTest, RepeatableCommandIsSentAgain) {
  const CallId call = machine.command({.words = {"STATUS"}, .give_up = now + 1h}, now);
  connect();
  sent();
  lose_connection();
  connect();
  EXPECT_EQ(sent_one(), "STATUS");
  receive("%0\r\n");
  EXPECT_TRUE(outcome<wire::Value>(call));
}

// --- What may be concluded when time is up -------------------------------------------------------

TEST_F(MachineTest, TimeoutBeforeASendIsUnavailable) {
  const CallId call = acquire(0ms, 1s);
  machine.disconnected("127.0.0.1:7295: Connection refused", now);
  pass(1s);
  const auto held = outcome<GrantedLease>(call);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_THAT(held.error().detail, HasSubstr("Connection refused"));
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, TimeoutAfterASendIsUnknownAndALateGrantIsReleased) {
  const CallId call = acquire(0ms, 1s);
  connect();
  sent();
  pass(1s);
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnknown);
  receive_grant(10s);
  EXPECT_EQ(sent_one(), "RELEASE " + kLeaseText);
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
  EXPECT_FALSE(complete());
}

TEST_F(MachineTest, UnreachableServersEndOnlyUnsentCalls) {
  const CallId old_call = acquire();
  connect();
  machine.disconnected("cut", now);
  const CallId new_call = acquire();
  machine.all_addresses_failed();
  EXPECT_EQ(outcome<GrantedLease>(new_call).error().code, Code::kUnavailable);
  now += 1s;
  connect();
  EXPECT_THAT(sent(), ElementsAre(StartsWith("ACQUIRE")));
  receive_grant(10s);
  EXPECT_TRUE(outcome<GrantedLease>(old_call));
}

TEST_F(MachineTest, SilentConnectionIsReplaced) {
  const CallId call = acquire();
  connect();
  sent();
  EXPECT_EQ(machine.next_timer(), now + 5s);
  pass(5s);
  EXPECT_TRUE(machine.wants_close());
  lose_connection();
  EXPECT_THAT(machine.last_error(), HasSubstr("no answer"));
  connect();
  receive_grant(10s);
  // First sent more than five seconds ago: confirmed before it is handed out.
  EXPECT_THAT(sent(), ElementsAre(StartsWith("ACQUIRE"), StartsWith("RENEW")));
  receive(":10000\r\n");
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

}  // namespace
}  // namespace pawl::client
