#include "client/machine.h"

#include <set>

#include "client/machine_fixture.h"
#include "client/request_id.h"

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST_F(MachineTest, IdleMachineWantsNoConnectionAndNoTimer) {
  EXPECT_FALSE(machine.wants_connection(now));
  EXPECT_EQ(machine.next_timer(), kNever);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, NothingIsSentBeforeTheGreetingIsAnswered) {
  acquire();
  machine.connected(now);
  EXPECT_THAT(sent(), ElementsAre(StartsWith("HELLO 3")));
  receive("%1\r\n+server\r\n+pawl\r\n");
  EXPECT_THAT(sent(), ElementsAre(StartsWith("ACQUIRE disk TTL 10000")));
}

TEST_F(MachineTest, GrantIsGoodUntilTheDeadlineCountedFromTheSend) {
  const CallId call = acquire();
  connect();
  EXPECT_THAT(sent_one(), HasSubstr("REQUEST "));
  const Instant at_send = now;
  now += 1s;
  receive_grant(10s);
  const auto held = outcome<Held>(call);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->token, Token{34});
  EXPECT_EQ(held->lease, kLease);
  EXPECT_EQ(held->deadline, at_send + 9900ms - 100ms);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, ReplySplitAtEveryByteIsTheSameReply) {
  const CallId call = acquire();
  connect();
  std::string bytes;
  wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
  wire::write_grant(reply, grant(10s, 0ms));
  for (const char byte : bytes) receive({&byte, 1});
  EXPECT_TRUE(outcome<Held>(call));
}

TEST_F(MachineTest, NotObtainedIsBusy) {
  const CallId call = acquire();
  connect();
  receive("_\r\n");
  EXPECT_EQ(outcome<Held>(call).error().code, Code::kBusy);
}

TEST_F(MachineTest, RepliesBelongToCallsInTheOrderTheyWereSent) {
  const CallId first = machine.renew({kLease, 10s}, now);
  const CallId second = machine.release({kLease, 10s}, now);
  connect();
  EXPECT_THAT(sent(), ElementsAre("RENEW " + kLeaseText, "RELEASE " + kLeaseText));
  receive(":9000\r\n:1\r\n");
  auto done = machine.take_completions();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].call, first);
  EXPECT_EQ(std::get<Result<Renewal>>(done[0].outcome)->expires_in, 9s);
  EXPECT_EQ(done[1].call, second);
  EXPECT_TRUE(std::get<Result<Release>>(done[1].outcome)->was_live);
}

// --- The other end misbehaves
// ---------------------------------------------------------------------------------------

TEST_F(MachineTest, BytesThatAreNoRespCloseTheConnectionAndTheCallGoesOn) {
  const CallId call = acquire();
  connect();
  sent();
  receive("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_TRUE(machine.wants_close());
  EXPECT_FALSE(complete());
  lose_connection();
  connect();
  receive_grant(10s);
  EXPECT_TRUE(outcome<Held>(call));
}

TEST_F(MachineTest, AWebServerIsNotAskedAgainAndAgain) {
  const CallId call = acquire();
  machine.connected(now);
  sent();
  receive("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_TRUE(machine.wants_close());
  const auto held = outcome<Held>(call);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_THAT(held.error().detail, HasSubstr("not RESP"));
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, AnswerNobodyAskedForClosesTheConnection) {
  acquire();
  connect();
  receive("_\r\n:1\r\n");
  EXPECT_TRUE(machine.wants_close());
}

TEST_F(MachineTest, GreetingThatIsDeniedEndsEveryCallAsDenied) {
  const CallId call = acquire();
  machine.connected(now);
  receive("-NOAUTH authenticate first\r\n");
  EXPECT_EQ(outcome<Held>(call).error().code, Code::kDenied);
  EXPECT_TRUE(machine.wants_close());
}

TEST_F(MachineTest, GreetingOfAStrangerIsNotTakenForAPawld) {
  const CallId call = acquire();
  machine.connected(now);
  receive("-ERR unknown command 'HELLO'\r\n");
  const auto held = outcome<Held>(call);
  EXPECT_EQ(held.error().code, Code::kUnavailable);
  EXPECT_THAT(held.error().detail, HasSubstr("no pawld"));
}

TEST_F(MachineTest, ServerThatSpeaksRespButIsNoPawldIsLeftAlone) {
  const CallId call = acquire();
  machine.connected(now);
  sent();
  receive("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
  EXPECT_EQ(outcome<Held>(call).error().code, Code::kUnavailable);
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(MachineTest, DeniedAtTheRetryDoesNotClaimThatNothingHappened) {
  const CallId call = acquire();
  connect();
  lose_connection();
  machine.connected(now);
  receive("-NOAUTH authenticate first\r\n");
  EXPECT_EQ(outcome<Held>(call).error().code, Code::kUnknown);
}

TEST_F(MachineTest, FullPawldStillTakesRenewals) {
  const CallId call = machine.renew({kLease, 10s}, now);
  machine.connected(now);
  sent();
  receive("-BUSY connections: 10000 are open; this one may only renew and release\r\n");
  EXPECT_EQ(sent_one(), "RENEW " + kLeaseText);
  receive(":10000\r\n");
  EXPECT_TRUE(outcome<Renewal>(call));
}

TEST_F(MachineTest, StandbyIsLeftForAnotherAddress) {
  const CallId call = acquire();
  connect();
  const std::string asked = sent_one();
  receive("-READONLY active=db2:7295\r\n");
  EXPECT_TRUE(machine.wants_close());
  lose_connection();
  pass(100ms);
  connect();
  EXPECT_EQ(sent_one(), asked);
  receive_grant(10s);
  EXPECT_TRUE(outcome<Held>(call));
}

TEST_F(MachineTest, ErrorsSayWhatMayBeConcluded) {
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
    EXPECT_EQ(outcome<Held>(call).error().code, code) << line;
  }
}

TEST_F(MachineTest, BackoffGrowsWithEveryFailureAndStartsAnewAfterASuccess) {
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
  machine.disconnected("cut", now);
  EXPECT_LE(machine.next_timer() - now, 50ms);
}

// --- What is wrong before anything is sent
// --------------------------------------------------------------------------

TEST_F(MachineTest, WhatDoesNotFitARequestIsInvalid) {
  const CallId none = machine.acquire({}, now);
  EXPECT_EQ(outcome<Held>(none).error().code, Code::kInvalid);
  const CallId many = machine.acquire({.locks = std::vector<std::string>(17, "x")}, now);
  EXPECT_EQ(outcome<Held>(many).error().code, Code::kInvalid);
  const CallId meta = machine.acquire({.locks = {"x"}, .meta = {9, {"k", "v"}}}, now);
  EXPECT_EQ(outcome<Held>(meta).error().code, Code::kInvalid);
  EXPECT_TRUE(machine.idle());
}

TEST_F(MachineTest, SameRequestIdTwiceAtOnceIsInvalid) {
  const std::string id(22, 'r');
  machine.acquire({.locks = {"x"}, .request = id}, now);
  const CallId second = machine.acquire({.locks = {"x"}, .request = id}, now);
  EXPECT_EQ(outcome<Held>(second).error().code, Code::kInvalid);
}

TEST(RequestId, IsLongEnoughMadeOfAllowedCharactersAndNeverTheSame) {
  SeededRandom random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = make_request_id(random);
    EXPECT_EQ(id.size(), 22u);
    EXPECT_EQ(id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace pawl::client
