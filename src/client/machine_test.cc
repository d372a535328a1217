#include "client/machine.h"

#include <set>

#include "client/machine.h"
#include "client/testlib/machine_fixture.h"

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST_F(MachineTest, IdleMachineWantsNothing) {
  EXPECT_FALSE(machine.wants_connection(now));
  EXPECT_EQ(machine.next_timer(), kNever);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, NothingIsSentBeforeHelloIsAnswered) {
  acquire();
  machine.connected(now);
  EXPECT_THAT(sent(), ElementsAre(StartsWith("HELLO 3")));
  receive("%1\r\n+server\r\n+pawl\r\n");
  EXPECT_THAT(sent(), ElementsAre(StartsWith("ACQUIRE disk TTL 10000")));
}

TEST_F(MachineTest, GrantDeadlineCountsFromTheSend) {
  const CallId call = acquire();
  connect();
  EXPECT_THAT(sent_one(), HasSubstr("REQUEST "));
  const Instant at_send = now;
  now += 1s;
  receive_grant(10s);
  const auto held = outcome<GrantedLease>(call);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->token, Token{34});
  EXPECT_EQ(held->lease, kLease);
  EXPECT_EQ(held->deadline, at_send + 9900ms - 100ms);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, ReplyMayBeSplitAnywhere) {
  const CallId call = acquire();
  connect();
  std::string bytes;
  wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
  wire::write_grant(reply, grant(10s, 0ms));
  for (const char byte : bytes) receive({&byte, 1});
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

TEST_F(MachineTest, HeldLockIsBusy) {
  const CallId call = acquire();
  connect();
  receive("_\r\n");
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kBusy);
}

TEST_F(MachineTest, RepliesMatchCallsInOrder) {
  const CallId first = machine.renew({kLease, 10s}, now);
  const CallId second = machine.release({kLease, 10s}, now);
  connect();
  EXPECT_THAT(sent(), ElementsAre("RENEW " + kLeaseText, "RELEASE " + kLeaseText));
  receive(":9000\r\n:1\r\n");
  auto done = machine.take_completions();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].call, first);
  EXPECT_EQ(std::get<Result<RenewResult>>(done[0].outcome)->expires_in, 9s);
  EXPECT_EQ(done[1].call, second);
  EXPECT_TRUE(std::get<Result<ReleaseResult>>(done[1].outcome)->was_live);
}

// --- The other end misbehaves --------------------------------------------------------------------

TEST_F(MachineTest, InvalidRespDropsTheConnectionNotTheCall) {
  const CallId call = acquire();
  connect();
  sent();
  receive("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_TRUE(machine.wants_close());
  EXPECT_FALSE(complete());
  lose_connection();
  connect();
  receive_grant(10s);
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

TEST_F(MachineTest, WebServerIsNotRetried) {
  const CallId call = acquire();
  machine.connected(now);
  sent();
  receive("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_TRUE(machine.wants_close());
  const auto held = outcome<GrantedLease>(call);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_THAT(held.error().detail, HasSubstr("not RESP"));
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, UnexpectedReplyDropsTheConnection) {
  acquire();
  connect();
  receive("_\r\n:1\r\n");
  EXPECT_TRUE(machine.wants_close());
}

TEST_F(MachineTest, DeniedHelloEndsEveryCall) {
  const CallId call = acquire();
  machine.connected(now);
  receive("-NOAUTH authenticate first\r\n");
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kDenied);
  EXPECT_TRUE(machine.wants_close());
}

class MachineAuthTest : public MachineTest {
 protected:
  // As `pawl run` with a short TTL: it expects answers sooner than pawld refuses a wrong secret.
  MachineOptions options() { return {.auth = {"ci", "secret"}, .answer_timeout = 500ms}; }
  Machine& known() { return known_; }
  CallId ask() {
    return known_.acquire({.locks = {"disk"}, .terms = {.ttl = 10s}, .give_up = now + 1h}, now);
  }

 private:
  Machine known_{random, options()};
};

TEST_F(MachineAuthTest, HelloCarriesTheCredentials) {
  ask();
  for (int round = 0; round < 2; ++round) {
    known().connected(now);
    EXPECT_EQ(known().take_output(),
              "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nci\r\n$6\r\nsecret\r\n$"
              "7\r\nSETNAME\r\n$"
              "4\r\npawl\r\n");
    known().received("%1\r\n+server\r\n+pawl\r\n", now);
    known().disconnected("cut", now);
    now += 3s;
  }
}

TEST_F(MachineAuthTest, WrongSecretIsNotRetried) {
  const CallId call = ask();
  known().connected(now);
  now += 1s;  // pawld takes its time to refuse.
  known().on_timer(now);
  ASSERT_FALSE(known().wants_close()) << "a shorter timeout would guess for ever";
  known().received("-WRONGPASS wrong user or secret\r\n", now);
  auto done = known().take_completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done.front().call, call);
  EXPECT_EQ(std::get<Result<GrantedLease>>(done.front().outcome).error().code, Code::kDenied);
  known().disconnected("closed", now);
  now += 1h;
  EXPECT_FALSE(known().wants_connection(now));
}

TEST_F(MachineAuthTest, AcceptedCredentialsRestoreTheAnswerTimeout) {
  ask();
  known().connected(now);
  known().received("%1\r\n+server\r\n+pawl\r\n", now);
  known().disconnected("cut", now);
  now += 3s;
  known().connected(now);
  now += 500ms;
  known().on_timer(now);
  EXPECT_TRUE(known().wants_close());
}

TEST_F(MachineAuthTest, CredentialsForAPawldWithoutUsersAreReported) {
  ask();
  known().connected(now);
  known().received("-ERR AUTH <password> called without any password configured\r\n", now);
  auto done = known().take_completions();
  ASSERT_EQ(done.size(), 1U);
  const auto& held = std::get<Result<GrantedLease>>(done.front().outcome);
  EXPECT_EQ(held.error().code, Code::kDenied);
  EXPECT_THAT(held.error().detail, HasSubstr("this pawld has no users"));
}

// pawld closes it because its user has changed: that answers no call, and the next connection
// authenticates anew.
TEST_F(MachineAuthTest, ClosingErrorOfAChangedUserIsNotAReply) {
  ask();
  known().connected(now);
  known().received("%1\r\n+server\r\n+pawl\r\n", now);
  known().received("-NOAUTH users: the auth_file has changed for this user; authenticate again\r\n",
                   now);
  EXPECT_TRUE(known().wants_close());
  EXPECT_FALSE(known().has_completions());
}

TEST_F(MachineTest, OtherServerIsNotTakenForAPawld) {
  const CallId call = acquire();
  machine.connected(now, "db1:6379");
  receive("-ERR unknown command 'HELLO'\r\n");
  const auto held = outcome<GrantedLease>(call);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_THAT(held.error().detail,
              HasSubstr("db1:6379: not a pawld server: unexpected reply to HELLO: "));
}

TEST_F(MachineTest, PlainConnectionToATlsPortNamesTheAddress) {
  const CallId call = acquire();
  machine.connected(now, "db1:7295");
  receive("-ERR this port speaks TLS: connect to tls://host:port, or with redis-cli --tls\r\n");
  const auto held = outcome<GrantedLease>(call);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_EQ(held.error().detail, "db1:7295 speaks TLS: write tls://db1:7295");
}

TEST_F(MachineTest, RedisIsNotTakenForAPawld) {
  const CallId call = acquire();
  machine.connected(now);
  sent();
  receive("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnavailable);
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(MachineTest, DeniedRetryIsUnknown) {
  const CallId call = acquire();
  connect();
  lose_connection();
  machine.connected(now);
  receive("-NOAUTH authenticate first\r\n");
  EXPECT_EQ(outcome<GrantedLease>(call).error().code, Code::kUnknown);
}

TEST_F(MachineTest, FullPawldStillRenews) {
  const CallId call = machine.renew({kLease, 10s}, now);
  machine.connected(now);
  sent();
  receive("-BUSY connections: 10000 are open; this one may only renew and release\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  receive(":10000\r\n");
  EXPECT_TRUE(outcome<RenewResult>(call));
}

TEST_F(MachineTest, StandbyIsLeftAtOnceForTheActiveOneItNames) {
  const CallId call = acquire();
  connect();
  const std::string asked = sent_one();
  receive("-READONLY active=db2:7395 http=db2:7396\r\n");
  EXPECT_TRUE(machine.wants_close());
  machine.disconnected("closed", now);
  EXPECT_EQ(to_text(machine.node()), "db2:7395");
  connect();
  EXPECT_EQ(sent_one(), asked);
  receive_grant(10s);
  EXPECT_TRUE(outcome<GrantedLease>(call));
}

TEST_F(MachineTest, StandbyThatKnowsOfNoneIsAskedAgainAfterAPause) {
  acquire();
  Nanos pause{0};
  for (int i = 0; i < 12; ++i) {
    connect();
    sent();
    receive("-READONLY this pawld stands by, and which one is active is not known yet\r\n");
    machine.disconnected("closed", now);
    EXPECT_FALSE(machine.wants_connection(now));
    pause = machine.next_timer() - now;
    now += pause;
  }
  EXPECT_GE(pause, 1s) << "a standby greets, but that is no success: the pauses grow";
}

// The number of the connection says nothing about the lease: only the answer does.
TEST_F(MachineTest, RenewalThatAStandbyRefusedCountsFromTheSendToTheActiveOne) {
  const CallId call = machine.renew({kLease, 10s}, now);
  connect();
  receive("-READONLY active=db2:7295\r\n");
  machine.disconnected("closed", now);
  pass(3s);
  connect();
  const Instant sent_at = now;
  pass(1s);
  receive(":10000\r\n");
  const auto renewed = outcome<RenewResult>(call);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->deadline, deadline(RenewTiming{sent_at, 10s, 10s}));
}

TEST_F(MachineTest, CommandThatMustNotBeRepeatedIsSentAgainWhenAStandbyRefusedIt) {
  const CallId call = machine.command(
      {.words = {"RAISE", "7"}, .repeat = CommandCall::Repeat::kForbidden, .give_up = now + 1h},
      now);
  connect();
  sent();
  receive("-READONLY active=db2:7295\r\n");
  machine.disconnected("closed", now);
  connect();
  EXPECT_EQ(sent_one(), "RAISE 7");
  receive(":7\r\n");
  EXPECT_TRUE(outcome<wire::Value>(call));
}

// It has executed neither of them; it says so of the second one as well.
TEST_F(MachineTest, CommandsSentTogetherToAStandbyAreAllSentAgain) {
  std::vector<CallId> calls;
  for (const char* token : {"7", "8"}) {
    calls.push_back(machine.command(
        {.words = {"RAISE", token}, .repeat = CommandCall::Repeat::kForbidden, .give_up = now + 1h},
        now));
  }
  connect();
  EXPECT_THAT(sent(), testing::SizeIs(2));
  receive("-READONLY active=db2:7295\r\n");
  EXPECT_FALSE(machine.wants_close()) << "the second answer is still to come";
  receive("-READONLY active=db2:7295\r\n");
  EXPECT_TRUE(machine.wants_close());
  machine.disconnected("closed", now);
  EXPECT_FALSE(complete()) << "what was not executed is not reported as unknown";
  connect();
  EXPECT_THAT(sent(), testing::ElementsAre("RAISE 7", "RAISE 8"));
  receive(":7\r\n:8\r\n");
  EXPECT_THAT(machine.take_completions(), testing::SizeIs(2));
}

TEST_F(MachineTest, ErrorLinesMapToCodes) {
  const std::pair<const char*, Code> cases[] = {
      {"-ERR TTL must be 100 to 600000\r\n", Code::kInvalid},
      {"-CONFLICT other locks\r\n", Code::kInvalid},
      {"-BUSY waiters: 1000000\r\n", Code::kUnavailable},
      {"-FULL no space\r\n", Code::kUnavailable},
      {"-NOPERM role use\r\n", Code::kDenied},
      {"-LOST released\r\n", Code::kLeaseLost},
      {"-WHATEVER it is\r\n", Code::kUnknown},
  };
  for (const auto& [line, code] : cases) {
    const CallId call = acquire();
    if (machine.wants_connection(now)) connect();
    receive(line);
    EXPECT_EQ(outcome<GrantedLease>(call).error().code, code) << line;
  }
}

TEST_F(MachineTest, BackoffGrowsAndResets) {
  acquire();
  Nanos longest{0};
  for (int i = 0; i < 12; ++i) {
    machine.disconnected("refused", now);
    longest = machine.next_timer() - now;
    EXPECT_LE(longest, 2s);
    now = machine.next_timer();
  }
  EXPECT_GE(longest, 1s);
  connect();
  receive("_\r\n");
  acquire();
  machine.disconnected("cut", now);
  EXPECT_LE(machine.next_timer() - now, 50ms);
}

// --- What is wrong before anything is sent -------------------------------------------------------

TEST_F(MachineTest, OversizedRequestIsInvalid) {
  const CallId none = machine.acquire({}, now);
  EXPECT_EQ(outcome<GrantedLease>(none).error().code, Code::kInvalid);
  const CallId many = machine.acquire({.locks = std::vector<std::string>(17, "x")}, now);
  EXPECT_EQ(outcome<GrantedLease>(many).error().code, Code::kInvalid);
  const CallId meta = machine.acquire({.locks = {"x"}, .meta = {9, {"k", "v"}}}, now);
  EXPECT_EQ(outcome<GrantedLease>(meta).error().code, Code::kInvalid);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, RequestIdInFlightIsInvalid) {
  const std::string id(22, 'r');
  machine.acquire({.locks = {"x"}, .request = id}, now);
  const CallId second = machine.acquire({.locks = {"x"}, .request = id}, now);
  EXPECT_EQ(outcome<GrantedLease>(second).error().code, Code::kInvalid);
}

TEST(RequestId, IsLongValidAndUnique) {
  SeededRandom random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = make_request_id(random);
    EXPECT_EQ(id.size(), 22u);
    EXPECT_EQ(
        id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
        std::string::npos);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace pawl::client
