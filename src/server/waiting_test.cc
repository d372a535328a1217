// Waiting: blocking and ASYNC, hang-ups, retries.
#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class WaitingTest : public EngineTest {
 protected:
  static constexpr const char* kId = "abcdefghijklmnopqrstuv";
  static std::string push(const std::string& event) {
    return ">4\r\n$4\r\npawl\r\n$" + std::to_string(event.size()) + "\r\n" + event;
  }
  std::string hold(const std::string& lock) {
    Client holder = connect();
    return lease_in(holder.ask("ACQUIRE " + lock + " TTL 60000"));
  }
  void release(const std::string& lease) { EXPECT_EQ(connect().ask("RELEASE " + lease), ":1\r\n"); }
};

TEST_F(WaitingTest, ABlockingWaitServesNothingElseOnItsConnection) {
  const std::string lease = hold("a");
  Client waiter = connect();
  waiter.send("ACQUIRE a TTL 1000 WAIT 5000\r\nPING\r\n");
  turn();
  EXPECT_EQ(waiter.take(), "");
  release(lease);
  const std::string all = waiter.take();
  EXPECT_FALSE(lease_in(all).empty());
  EXPECT_EQ(all.substr(all.size() - 7), "+PONG\r\n")
      << "what was pipelined behind the wait is served with its end";
}

TEST_F(WaitingTest, AWaitThatEndsWithoutTheLockIsNull) {
  hold("a");
  Client two = connect();
  Client three = connect3();
  two.say("ACQUIRE a TTL 1000 WAIT 500");
  three.say("ACQUIRE a TTL 1000 WAIT 500");
  turn();
  live(600ms);
  EXPECT_EQ(two.take(), "*-1\r\n");
  EXPECT_EQ(three.take(), "_\r\n");
}

// Hard case 22. 1,000 waiters, one message per handoff.
TEST_F(WaitingTest, AReleaseWakesOnlyTheOneItGrants) {
  std::string lease = hold("a");
  std::vector<Client> waiters;
  for (int i = 0; i < 1000; ++i) {
    waiters.push_back(connect());
    waiters.back().say("ACQUIRE a TTL 60000 WAIT 60000");
  }
  turn();
  for (Client& next : waiters) {
    release(lease);
    std::size_t sends = 0;
    for (Client& waiter : waiters) sends += std::exchange(waiter.line().sends, 0);
    ASSERT_EQ(sends, 1U);
    lease = lease_in(next.take());
    ASSERT_FALSE(lease.empty()) << "not in order of arrival";
  }
}

// Hard case 19. The hang-up and the release are read in the same turn, the release first.
TEST_F(WaitingTest, AWaiterThatHungUpIsNeverGranted) {
  const std::string lease = hold("a");
  Client first = connect();
  Client second = connect();
  Client holder = connect();
  first.ask("ACQUIRE a TTL 1000 WAIT 5000");
  second.ask("ACQUIRE a TTL 1000 WAIT 5000");
  holder.say("RELEASE " + lease);
  first.hang_up();
  turn();
  EXPECT_EQ(lease_in(first.take()), "");
  EXPECT_FALSE(lease_in(second.take()).empty());
  EXPECT_TRUE(first.closed());
}

// Hard case 19. The first waits for both locks, so the second stands behind it at a free one. When
// both go in one turn, the end of the first must not let the second through.
TEST_F(WaitingTest, AHangUpDoesNotHandALockToAnotherThatHungUpInTheSameTurn) {
  hold("a");
  Client first = connect();
  Client second = connect();
  first.ask("ACQUIRE a AND b TTL 1000 WAIT 5000");
  second.ask("ACQUIRE b TTL 1000 WAIT 5000");
  const auto before = engine().totals().last_token;
  first.hang_up();
  second.hang_up();
  turn();
  EXPECT_EQ(engine().totals().last_token, before);
  EXPECT_EQ(engine().totals().waiters, 0U);
}

// The same, with the place taken over by a retry: what counts is the place in the queue, not who
// came last.
TEST_F(WaitingTest, AnInheritedPositionIsCancelledInQueueOrder) {
  hold("a");
  Client old = connect();
  Client second = connect();
  Client retry = connect();
  const std::string command = std::string("ACQUIRE a AND b TTL 1000 WAIT 5000 REQUEST ") + kId;
  old.ask(command);
  second.ask("ACQUIRE b TTL 1000 WAIT 5000");
  retry.ask(command);
  EXPECT_EQ(old.take(), "-CONFLICT superseded by a newer connection\r\n");
  const auto before = engine().totals().last_token;
  retry.hang_up();
  second.hang_up();
  turn();
  EXPECT_EQ(engine().totals().last_token, before);
}

// Hard case 20.
TEST_F(WaitingTest, WaitersThatHangUpLeaveNothingBehind) {
  hold("a");
  std::vector<Client> waiters;
  for (int i = 0; i < 1000; ++i) {
    waiters.push_back(connect3());
    waiters.back().say(i % 2 == 0
                           ? "ACQUIRE a TTL 1000 WAIT 60000"
                           : "ACQUIRE a TTL 1000 WAIT 60000 ASYNC REQUEST abcdefghijklmnopqrst" +
                                 std::to_string(1000 + i));
  }
  turn();
  EXPECT_EQ(engine().totals().waiters, 1000U);
  for (Client& waiter : waiters) waiter.hang_up();
  turn();
  EXPECT_EQ(engine().totals().waiters, 0U);
  EXPECT_EQ(engine().connections().size(), 1U);
}

TEST_F(WaitingTest, CommandsBeforeAHangUpApplyButAreNotQueued) {
  const std::string lease = hold("a");
  Client client = connect();
  client.send("ACQUIRE b TTL 1000\r\nACQUIRE a TTL 1000 WAIT 5000\r\nPING\r\nPI");
  client.hang_up();
  turn();
  const std::string all = client.take();
  EXPECT_FALSE(lease_in(all).empty());
  EXPECT_EQ(all.substr(all.size() - 12), "*-1\r\n+PONG\r\n");
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(engine().totals().waiters, 0U);
  EXPECT_EQ(engine().totals().leases, 2U);
}

TEST_F(WaitingTest, WhatIsPipelinedBehindAWaitStillAppliesWhenThePeerHangsUp) {
  hold("a");
  const std::string other = hold("b");
  Client client = connect();
  client.send("ACQUIRE a TTL 1000 WAIT 5000\r\nRELEASE " + other + "\r\n");
  turn();
  client.hang_up();
  turn();
  EXPECT_EQ(client.take(), "*-1\r\n:1\r\n");
  EXPECT_EQ(engine().totals().leases, 1U);
}

TEST_F(WaitingTest, AHalfClosedPeerIsAnsweredEvenWhenTheStoreIsLate) {
  Client client = connect();
  store.hold();
  client.say("ACQUIRE b TTL 1000");
  client.hang_up();
  turn();
  EXPECT_FALSE(client.closed());
  store.release();
  turn();
  EXPECT_FALSE(lease_in(client.take()).empty());
  EXPECT_TRUE(client.closed());
}

TEST_F(WaitingTest, AnAsyncWaitLeavesTheConnectionFreeAndEndsInAPush) {
  const std::string lease = hold("a");
  Client client = connect3();
  EXPECT_EQ(client.ask(std::string("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST ") + kId),
            "%2\r\n$5\r\nstate\r\n$6\r\nqueued\r\n$8\r\nposition\r\n:1\r\n");
  EXPECT_EQ(client.ask("PING"), "+PONG\r\n");
  release(lease);
  const std::string granted = client.take();
  EXPECT_EQ(granted.find(push("granted")), 0U) << granted;
  EXPECT_EQ(lease_in(granted).size(), 32U);
}

TEST_F(WaitingTest, AsyncWaitsEndInTimeoutOrCancelledToo) {
  hold("a");
  Client client = connect3();
  client.ask(std::string("ACQUIRE a TTL 1000 WAIT 500 ASYNC REQUEST ") + kId);
  live(600ms);
  EXPECT_EQ(client.take().find(push("timeout")), 0U);
  client.ask(std::string("ACQUIRE a TTL 1000 WAIT 500 ASYNC REQUEST ") + kId);
  // From any connection.
  EXPECT_EQ(connect().ask(std::string("CANCEL ") + kId), ":1\r\n");
  EXPECT_EQ(client.take().find(push("cancelled")), 0U);
  EXPECT_EQ(connect().ask(std::string("CANCEL ") + kId), ":0\r\n");
}

TEST_F(WaitingTest, ACancelledBlockingWaitIsNull) {
  hold("a");
  Client waiter = connect();
  waiter.ask(std::string("ACQUIRE a TTL 1000 WAIT 5000 REQUEST ") + kId);
  EXPECT_EQ(connect().ask(std::string("CANCEL ") + kId), ":1\r\n");
  EXPECT_EQ(waiter.take(), "*-1\r\n");
  EXPECT_EQ(waiter.ask("PING"), "+PONG\r\n");
}

TEST_F(WaitingTest, AsyncNeedsResp3) {
  Client client = connect();
  EXPECT_EQ(
      client.ask(std::string("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST ") + kId).substr(0, 5),
      "-ERR ");
}

// Hard case 4. The newest connection owns the wait; the old one's hang-up no longer matters.
TEST_F(WaitingTest, ARetryOnAnotherConnectionKeepsThePositionAndEndsTheOldWait) {
  const std::string lease = hold("a");
  Client old = connect3();
  Client behind = connect();
  Client fresh = connect3();
  const std::string command = std::string("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST ") + kId;
  old.ask(command);
  behind.ask("ACQUIRE a TTL 1000 WAIT 5000");
  EXPECT_NE(fresh.ask(command).find("position\r\n:1\r\n"), std::string::npos);
  EXPECT_EQ(old.take().find(push("superseded")), 0U);
  old.hang_up();
  turn();
  release(lease);
  EXPECT_EQ(fresh.take().find(push("granted")), 0U);
  EXPECT_EQ(behind.take(), "");
}

// The kernel may deliver an ACQUIRE and the end of an abandoned connection after the client has
// asked again elsewhere.
TEST_F(WaitingTest, ALateRequestOfAConnectionThatHungUpLeavesTheLiveWaitAlone) {
  for (const std::string wait : {" WAIT 5000", ""}) {
    const std::string lease = hold("a");
    Client fresh = connect();
    Client behind = connect();
    Client abandoned = connect();
    const std::string request = std::string(" REQUEST ") + kId + std::to_string(wait.size());
    fresh.ask("ACQUIRE a TTL 1000 WAIT 5000" + request);
    behind.ask("ACQUIRE a TTL 1000 WAIT 5000");
    abandoned.say("ACQUIRE a TTL 1000" + wait + request);
    abandoned.hang_up();
    turn();
    EXPECT_EQ(fresh.take(), "");
    release(lease);
    const std::string granted = lease_in(fresh.take());
    EXPECT_FALSE(granted.empty());
    EXPECT_EQ(behind.take(), "");

    Client late = connect();
    late.say("ACQUIRE a TTL 1000" + wait + request);
    late.hang_up();
    turn();
    EXPECT_EQ(lease_in(late.take()), granted) << "the outcome may be read";
    release(granted);
    release(lease_in(behind.take()));
  }
}

TEST_F(WaitingTest, ALateCancelOfAConnectionThatHungUpLeavesTheLiveWaitAlone) {
  const std::string lease = hold("a");
  const std::string request = std::string(" REQUEST ") + kId;
  Client abandoned = connect();
  Client fresh = connect();
  abandoned.ask("ACQUIRE a TTL 1000 WAIT 5000" + request);
  fresh.ask("ACQUIRE a TTL 1000 WAIT 5000" + request);
  abandoned.take();
  abandoned.say(std::string("CANCEL ") + kId);
  abandoned.hang_up();
  turn();
  EXPECT_EQ(abandoned.take(), ":0\r\n");
  EXPECT_EQ(fresh.take(), "");
  EXPECT_EQ(engine().totals().waiters, 1U);
  release(lease);
  EXPECT_FALSE(lease_in(fresh.take()).empty());
}

TEST_F(WaitingTest, ARepeatedRequestOnOneConnectionGetsThePositionOnly) {
  hold("a");
  Client client = connect3();
  const std::string command = std::string("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST ") + kId;
  const std::string queued = client.ask(command);
  EXPECT_EQ(client.ask(command), queued);
  client.hang_up();
  turn();
  EXPECT_EQ(engine().totals().waiters, 0U);
}

// Hard case 18. Cancel first: not granted. Grant first: the cancel says so, and the grant stands.
TEST_F(WaitingTest, ACancelAndAGrantInOneTurnAgreeOnTheirOrder) {
  for (const bool cancel_first : {true, false}) {
    const std::string lease = hold("a");
    Client waiter = connect();
    Client holder = connect();
    waiter.ask(std::string("ACQUIRE a TTL 1000 WAIT 5000 REQUEST ") + kId);
    const std::string cancel = std::string("CANCEL ") + kId + "\r\n";
    const std::string release = "RELEASE " + lease + "\r\n";
    holder.send(cancel_first ? cancel + release : release + cancel);
    turn();
    EXPECT_EQ(holder.take(), cancel_first ? ":1\r\n:1\r\n" : ":1\r\n:0\r\n");
    const std::string got = waiter.take();
    EXPECT_EQ(lease_in(got).empty(), cancel_first) << got;
    if (!cancel_first) {
      EXPECT_EQ(waiter.ask("RELEASE " + lease_in(got)), ":1\r\n");
    }
  }
}

TEST_F(WaitingTest, QuitEndsTheWaitsOfItsConnection) {
  hold("a");
  Client client = connect3();
  client.ask(std::string("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST ") + kId);
  EXPECT_EQ(client.ask("QUIT"), "+OK\r\n");
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(engine().totals().waiters, 0U);
}

TEST_F(WaitingTest, MrenewAnswersInOrderAndNoPushLandsInsideIt) {
  Client client = connect3();
  const std::string capped = lease_in(client.ask("ACQUIRE a TTL 1000 MAXHOLD 1000"));
  const std::string plain = lease_in(client.ask("ACQUIRE b TTL 5000"));
  client.ask(std::string("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST ") + kId);
  for (int i = 0; i < 9; ++i) live(100ms);
  advance(101ms);  // The cap is reached in this very turn, by the renewal itself.
  const std::string all =
      client.ask("MRENEW " + plain + " " + capped + " 00000000000000000000000000000000");
  EXPECT_EQ(all.find(push("granted")), 0U) << all;
  EXPECT_EQ(all.substr(all.size() - 21), "*3\r\n:5000\r\n:-1\r\n:-1\r\n");
}

TEST_F(WaitingTest, TooManyAsyncWaitsOnOneConnectionAreRefusedByName) {
  settings.async_waits_max = 3;
  restart();
  hold("a");
  Client client = connect3();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client
                  .ask("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST abcdefghijklmnopqrstu" +
                       std::to_string(i))
                  .front(),
              '%');
  }
  EXPECT_EQ(
      client.ask("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST abcdefghijklmnopqrstu3").substr(0, 14),
      "-BUSY waiters:");
  EXPECT_EQ(client.ask("ACQUIRE a TTL 1000 WAIT 5000 ASYNC REQUEST abcdefghijklmnopqrstu1").front(),
            '%')
      << "asking again for one that waits opens no further wait";
}

TEST_F(WaitingTest, ALockThatIsFreeIsGrantedBeyondTheLimitOfAsyncWaits) {
  settings.async_waits_max = 1;
  restart();
  hold("a");
  Client client = connect3();
  const auto acquire = [&](const std::string& lock, char last) {
    return client.ask("ACQUIRE " + lock +
                      " TTL 1000 WAIT 5000 ASYNC REQUEST abcdefghijklmnopqrstu" + last);
  };
  EXPECT_NE(acquire("a", '0').find("queued"), std::string::npos);
  const std::string granted = acquire("free", '1');
  EXPECT_FALSE(lease_in(granted).empty()) << granted;
  EXPECT_EQ(acquire("free", '1'), granted) << "a retry reads its lease";
  EXPECT_EQ(acquire("free", '2').substr(0, 14), "-BUSY waiters:");
  EXPECT_EQ(acquire("free", '2').substr(0, 14), "-BUSY waiters:") << "nothing is left of it";
  EXPECT_EQ(client.ask("RELEASE " + lease_in(granted)), ":1\r\n");
  EXPECT_FALSE(lease_in(acquire("free", '2')).empty());
}

}  // namespace
}  // namespace pawl::server
