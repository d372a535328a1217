// A store that several pawld share: what the engine says while another one could be active, or is.
#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class RoleWindowTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    store.set_may_answer_until(clock.reading.monotonic + 5s);
  }
  void confirm_for(Nanos span) { store.set_may_answer_until(clock.reading.monotonic + span); }
};

TEST_F(RoleWindowTest, NothingFromMemoryIsSaidPastTheWindow) {
  Client holder = connect(), reader = connect3(), waiter = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 60000"));
  ASSERT_FALSE(lease.empty());
  advance(5s);
  EXPECT_EQ(holder.ask("RENEW " + lease), "");
  EXPECT_EQ(reader.ask("INSPECT a"), "");
  EXPECT_EQ(waiter.ask("ACQUIRE a TTL 1000"), "") << "that it was not obtained";
  EXPECT_EQ(connect().ask("RENEW " + std::string(32, '0')), "") << "that it is lost";
}

TEST_F(RoleWindowTest, WhatWasHeldIsSaidInOrderWhenTheStoreConfirms) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 60000"));
  advance(5s);
  client.say("RENEW " + lease).say("PING");
  turn();
  EXPECT_EQ(client.take(), "");
  confirm_for(5s);
  turn();
  EXPECT_EQ(client.take(), ":60000\r\n+PONG\r\n");
}

TEST_F(RoleWindowTest, TheClockIsReadAfterTheRequest) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 60000"));
  advance(4s);
  turn();  // In time, but the request comes later.
  advance(1s);
  EXPECT_EQ(client.ask("RENEW " + lease), "");
}

// Its batch is confirmed, but the renewal behind it arrived after that batch was sent.
TEST_F(RoleWindowTest, ABatchThatIsConfirmedLateLetsNothingPass) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 60000"));
  store.hold();
  client.say("ACQUIRE b TTL 60000");
  turn();
  advance(5s);
  client.say("RENEW " + lease);
  turn();
  store.release();
  turn();
  EXPECT_EQ(client.take(), "");
}

TEST_F(RoleWindowTest, EventsAreHeldAsWell) {
  Client observer = connect3(), client = connect();
  observer.ask("OBSERVE \"\"");
  store.hold();
  client.say("ACQUIRE a TTL 60000");
  turn();
  advance(5s);
  store.release();
  turn();
  EXPECT_EQ(observer.take(), "");
  confirm_for(5s);
  turn();
  EXPECT_NE(observer.take().find("granted"), std::string::npos);
}

TEST_F(RoleWindowTest, BothEndsOfAClosedWindowAreLogged) {
  const auto logged = [this](std::string_view text) {
    return std::any_of(log.lines.begin(), log.lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  advance(5s);
  turn();
  EXPECT_TRUE(logged("has not confirmed in time"));
  EXPECT_FALSE(logged("confirms again"));
  confirm_for(5s);
  turn();
  EXPECT_TRUE(logged("confirms again"));
}

class DeposedTest : public EngineTest {
 protected:
  static constexpr std::string_view kElsewhere = "-READONLY active=db2:7295\r\n";
  void depose() {
    store.depose({.address = "db2:7295", .epoch = 4, .incarnation = Incarnation{7}});
    turn();
  }
  void elect() {
    store.elect();
    turn();
  }
};

TEST_F(DeposedTest, ADeposedPawldNamesTheActiveOneAndDoesNotEnd) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 60000"));
  depose();
  EXPECT_EQ(fatal, 0);
  EXPECT_FALSE(client.closed()) << "nothing was owed to it";
  EXPECT_EQ(client.ask("RENEW " + lease), kElsewhere);
  EXPECT_EQ(client.ask("ACQUIRE b TTL 1000"), kElsewhere);
  EXPECT_EQ(client.ask("INSPECT a"), kElsewhere);
  EXPECT_EQ(client.ask("PING"), "+PONG\r\n");
}

TEST_F(DeposedTest, AnswersThatWereNotConfirmedAreNeverSent) {
  Client asking = connect(), waiting = connect(), holder = connect(), observer = connect3();
  ASSERT_FALSE(lease_in(holder.ask("ACQUIRE a TTL 60000")).empty());
  observer.ask("OBSERVE \"\"");
  waiting.say("ACQUIRE a TTL 1000 WAIT 9000");
  turn();
  store.hold();
  asking.say("ACQUIRE b TTL 1000");
  turn();
  observer.take();
  depose();
  for (Client* client : {&asking, &waiting, &observer}) {
    EXPECT_EQ(client->take(), "");
    EXPECT_TRUE(client->closed());
  }
  EXPECT_FALSE(holder.closed());
  EXPECT_EQ(engine().totals().leases, 0U) << "the state is another pawld's now";
}

TEST_F(DeposedTest, HeldAnswersAreDroppedToo) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 60000"));
  store.set_may_answer_until(clock.reading.monotonic);
  client.say("RENEW " + lease);
  turn();
  depose();
  EXPECT_EQ(client.take(), "");
  EXPECT_TRUE(client.closed());
}

TEST_F(DeposedTest, StatusTellsRoleAndEpoch) {
  Client client = connect3();
  EXPECT_NE(client.ask("STATUS").find("active"), std::string::npos);
  depose();
  const std::string standby = client.ask("STATUS");
  EXPECT_NE(standby.find("standby"), std::string::npos) << standby;
  EXPECT_NE(standby.find("$5\r\nepoch\r\n:4\r\n"), std::string::npos) << standby;
  EXPECT_NE(standby.find("db2:7295"), std::string::npos) << standby;
  EXPECT_NE(standby.find("\r\n0000000000000007\r\n"), std::string::npos)
      << "the incarnation is that of the store: " << standby;
  elect();
  const std::string active = client.ask("STATUS");
  EXPECT_EQ(active.find("standby"), std::string::npos) << active;
  EXPECT_NE(active.find("$5\r\nepoch\r\n:5\r\n"), std::string::npos) << active;
}

TEST_F(DeposedTest, AnElectedPawldServesWhatWasStoredWithFullTtls) {
  Client client = connect();
  const std::string grant = client.ask("ACQUIRE a TTL 1000");
  const std::string lease = lease_in(grant);
  live(900ms);
  depose();
  live(5s);
  elect();
  live(900ms);
  EXPECT_EQ(client.ask("ACQUIRE a TTL 1000"), "*-1\r\n") << "a TTL begins in full at a takeover";
  EXPECT_EQ(client.ask("RENEW " + lease), ":1000\r\n");
  EXPECT_GT(token_in(client.ask("ACQUIRE b TTL 1000")), token_in(grant));
}

class HandoverTest : public DeposedTest {
 protected:
  void SetUp() override {
    DeposedTest::SetUp();
    list_nodes("standby");
  }
  void list_nodes(const std::string& other_role) {
    store.set_cluster({.name = "test",
                       .nodes = {{.address = "db1:7295", .role = "active", .is_self = true},
                                 {.address = "db2:7295", .role = other_role}}});
  }
};

TEST_F(HandoverTest, WhatWasAskedBeforeIsFinishedAndAnswered) {
  Client client = connect(), boss = connect3();
  store.limit_batches({});
  store.hold();
  client.say("ACQUIRE a TTL 60000");
  turn();  // This batch is under way,
  Client next = connect();
  next.say("ACQUIRE b TTL 60000");
  turn();  // and this one is not submitted yet.
  EXPECT_NE(boss.ask("HANDOVER").find("epoch"), std::string::npos);
  EXPECT_EQ(client.ask("PING"), "") << "nothing more is served";
  store.release();
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_FALSE(lease_in(client.take()).empty());
  EXPECT_FALSE(lease_in(next.take()).empty());
  EXPECT_TRUE(engine().standing_by());
  EXPECT_FALSE(client.closed()) << "nothing is owed to it";
  elect();
  EXPECT_EQ(client.ask("ACQUIRE b TTL 1000"), "*-1\r\n") << "the next one knows both grants";
}

TEST_F(HandoverTest, WhatIsAskedMeanwhileIsSentToTheOtherOne) {
  Client boss = connect(), late = connect();
  store.hold();
  late.say("ACQUIRE a TTL 60000");
  turn();
  boss.ask("HANDOVER");
  boss.say("ACQUIRE c TTL 60000");
  turn();
  EXPECT_EQ(boss.take(), "");
  store.release();
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_TRUE(boss.take().starts_with("-READONLY"));
}

TEST_F(HandoverTest, WithoutAStandbyTheRoleStays) {
  Client boss = connect();
  list_nodes("silent");
  EXPECT_TRUE(boss.ask("HANDOVER").starts_with("-BUSY standby:"));
  turn();
  EXPECT_FALSE(engine().standing_by());
  EXPECT_EQ(boss.ask("PING"), "+PONG\r\n");
}

TEST_F(HandoverTest, AStandbyNamesTheActiveOne) {
  Client boss = connect();
  depose();
  EXPECT_EQ(boss.ask("HANDOVER"), kElsewhere);
}

TEST_F(DeposedTest, EventNumbersGrowOverTakeovers) {
  Client client = connect();
  std::vector<std::uint64_t> ids;
  for (int round = 0; round < 3; ++round) {
    Client observer = connect3();
    observer.ask("OBSERVE \"\"");
    const std::string reply = client.ask("ACQUIRE lock-" + std::to_string(round) + " TTL 60000");
    ASSERT_FALSE(lease_in(reply).empty()) << reply;
    const std::string event = observer.take();
    const auto at = event.find("0000000000000007-");
    ASSERT_NE(at, std::string::npos) << event;
    ids.push_back(std::stoull(event.substr(at + 17)));
    depose();
    elect();
  }
  EXPECT_LT(ids[0], ids[1]);
  EXPECT_LT(ids[1], ids[2]);
}

TEST_F(DeposedTest, OneThatBeginsAsStandbyLoadsWhenItIsElected) {
  Client before = connect();
  const std::string lease = lease_in(before.ask("ACQUIRE a TTL 60000"));
  store.depose({.address = "db2:7295", .epoch = 1});
  stand_by();
  Client client = connect();
  EXPECT_EQ(client.ask("RENEW " + lease), kElsewhere);
  elect();
  EXPECT_EQ(client.ask("RENEW " + lease), ":60000\r\n");
}

}  // namespace
}  // namespace pawl::server
