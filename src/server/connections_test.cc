// Connections: handshake, lanes, limits, slow readers, loading.
#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class ConnectionsTest : public EngineTest {};

TEST_F(ConnectionsTest, WhatOrdinaryClientsSendFirstIsAnswered) {
  Client client = connect();
  EXPECT_EQ(client.ask("PING"), "+PONG\r\n");
  EXPECT_EQ(client.ask("PING hi"), "$2\r\nhi\r\n");
  EXPECT_EQ(client.ask("ECHO hi"), "$2\r\nhi\r\n");
  EXPECT_EQ(client.ask("SELECT 0"), "+OK\r\n");
  EXPECT_EQ(client.ask("CLIENT SETNAME me"), "+OK\r\n");
  EXPECT_EQ(client.ask("CLIENT GETNAME"), "$2\r\nme\r\n");
  EXPECT_EQ(client.ask("CLIENT SETINFO LIB-NAME redis-py"), "+OK\r\n");
  EXPECT_EQ(client.ask("CLIENT ID"), ":" + std::to_string(client.id().value) + "\r\n");
  EXPECT_NE(client.ask("CLIENT LIST").find("lib-name=redis-py"), std::string::npos);
  EXPECT_NE(client.ask("CLIENT INFO").find("name=me"), std::string::npos);
  EXPECT_EQ(client.ask("CONFIG GET save"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(client.ask("CONFIG GET nothing"), "*0\r\n");
  EXPECT_EQ(client.ask("AUTH secret").substr(0, 10), "-ERR AUTH ");
  EXPECT_NE(client.ask("INFO").find("loading:0\r\n"), std::string::npos);
  EXPECT_EQ(client.ask("TIME").substr(0, 4), "*2\r\n");
  EXPECT_EQ(client.ask("COMMAND COUNT").front(), ':');
  EXPECT_EQ(client.ask("COMMAND DOCS PING").front(), '*');
  EXPECT_EQ(client.ask("HELLO 3").substr(0, 4), "%7\r\n");
  EXPECT_EQ(client.ask("RESET"), "+RESET\r\n");
  EXPECT_EQ(client.ask("CLIENT GETNAME"), "$-1\r\n") << "RESP2 again, without a name";
}

TEST_F(ConnectionsTest, UnknownCommandsAndSubcommandsKeepTheConnection) {
  Client client = connect();
  EXPECT_EQ(client.ask("GET x").substr(0, 4), "-ERR");
  EXPECT_EQ(client.ask("CLIENT KILL x").substr(0, 4), "-ERR");
  EXPECT_EQ(client.ask("ACQUIRE x TTL 1").substr(0, 4), "-ERR");
  EXPECT_EQ(client.ask("PING"), "+PONG\r\n");
}

TEST_F(ConnectionsTest, AProtocolErrorClosesAndSoDoesAWebPage) {
  Client broken = connect();
  broken.send("PING\r\n*1\r\nnonsense\r\n");
  Client page = connect();
  page.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nACQUIRE a TTL 1000\r\n");
  turn();
  EXPECT_EQ(broken.take().substr(0, 11), "+PONG\r\n-ERR");
  EXPECT_TRUE(broken.closed());
  EXPECT_TRUE(page.closed());
  EXPECT_EQ(engine().totals().leases, 0U);
  EXPECT_EQ(engine().connections().size(), 0U);
}

TEST_F(ConnectionsTest, ALongLoadLetsConnectionsTakeTurnsAndThenServesThem) {
  Client client = connect();
  for (int i = 0; i < 2500; ++i) client.ask("ACQUIRE lock/" + std::to_string(i) + " TTL 60000");
  Engine loading(settings, EngineParts{store, clock, random, network, log, [](const Error&) {}});
  store.crash();
  FakeNetwork::Line& line = network.lines[99];
  loading.connected(ConnectionId{99}, "early");
  const auto ask = [&](std::string_view command) {
    loading.received(ConnectionId{99}, std::string(command) + "\r\n");
    loading.run_turn();
    return std::exchange(line.received, {});
  };
  int pieces = 0;
  const auto loaded = loading.load([&] {
    ++pieces;
    EXPECT_EQ(ask("PING"), "+PONG\r\n");
    EXPECT_EQ(ask("INSPECT lock/1").substr(0, 9), "-LOADING ");
    return true;
  });
  ASSERT_TRUE(loaded) << loaded.error().detail;
  EXPECT_EQ(pieces, 2);
  EXPECT_NE(ask("INSPECT lock/1").find("held"), std::string::npos);
}

TEST_F(ConnectionsTest, AStoppedLoadIsAnError) {
  Client client = connect();
  for (int i = 0; i < 1000; ++i) client.ask("ACQUIRE lock/" + std::to_string(i) + " TTL 60000");
  Engine loading(settings, EngineParts{store, clock, random, network, log, [](const Error&) {}});
  store.crash();
  const auto loaded = loading.load([] { return false; });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kUnavailable);
  EXPECT_TRUE(loading.loading());
}

TEST_F(ConnectionsTest, TlsOnAPlainPortIsAnsweredWithAnErrorAndClosed) {
  Client client = connect();
  client.send("\x16\x03\x01");
  turn();
  EXPECT_EQ(client.take(), "-ERR Protocol error: this port does not speak TLS\r\n");
  EXPECT_TRUE(client.closed());
}

TEST_F(ConnectionsTest, ProtocolErrorsAreLoggedAtMostOnceASecond) {
  for (int i = 0; i < 3; ++i) {
    Client client = connect();
    client.send("*1\r\nnonsense\r\n");
    turn();
  }
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("expected '$'"), std::string::npos) << log.lines[0];
  live(Millis(1100));
  connect().send("*1\r\nnonsense\r\n");
  turn();
  ASSERT_EQ(log.lines.size(), 2U);
  EXPECT_NE(log.lines[1].find("(2 more since the last line)"), std::string::npos) << log.lines[1];
}

TEST_F(ConnectionsTest, WhileLoadingOnlyTheHandshakeIsServed) {
  store::MemoryStore empty{Incarnation{1}};
  Engine loading(settings, EngineParts{empty, clock, random, network, log, [](const Error&) {}});
  const auto ask = [&](std::string_view command) {
    loading.received(ConnectionId{99}, std::string(command) + "\r\n");
    loading.run_turn();
    return std::exchange(network.lines[99].received, {});
  };
  loading.connected(ConnectionId{99}, "early");
  EXPECT_EQ(ask("PING"), "+PONG\r\n");
  EXPECT_NE(ask("STATUS").find("loading"), std::string::npos);
  EXPECT_NE(ask("INFO").find("loading:1"), std::string::npos);
  EXPECT_EQ(ask("ACQUIRE a TTL 1000").substr(0, 9), "-LOADING ");
  ASSERT_TRUE(loading.load());
  EXPECT_FALSE(lease_in(ask("ACQUIRE a TTL 1000")).empty());
}

// G10. Overload slows new acquires; it does not expire healthy holders.
TEST_F(ConnectionsTest, BeyondTheLimitALaneIsLeftForRenewals) {
  settings.connections_max = 2;
  settings.connections_reserved = 1;
  restart();
  Client first = connect();
  connect();
  const std::string lease = lease_in(first.ask("ACQUIRE a TTL 1000"));
  Client lane = connect();
  EXPECT_EQ(lane.ask("ACQUIRE b TTL 1000").substr(0, 18), "-BUSY connections:");
  EXPECT_EQ(lane.ask("RENEW " + lease), ":1000\r\n");
  EXPECT_EQ(lane.ask("MRENEW " + lease), "*1\r\n:1000\r\n");
  EXPECT_EQ(lane.ask("PING"), "+PONG\r\n");
  Client refused = connect();
  EXPECT_EQ(refused.take().substr(0, 18), "-BUSY connections:");
  EXPECT_TRUE(refused.closed());
  EXPECT_EQ(lane.ask("RELEASE " + lease), ":1\r\n");
  // An ordinary one goes, and the lane's becomes ordinary.
  first.hang_up();
  turn();
  EXPECT_FALSE(lease_in(lane.ask("ACQUIRE b TTL 1000")).empty());
}

// Hard case 25, as far as replies go.
TEST_F(ConnectionsTest, AClientThatDoesNotReadIsNeitherServedFurtherNorHarmsOthers) {
  Client slow = connect();
  slow.line().window = 0;
  const std::string big(60'000, 'x');
  for (int i = 0; i < 20; ++i) {
    slow.send("*2\r\n$4\r\nECHO\r\n$60000\r\n" + big + "\r\n");
    turn();
  }
  EXPECT_FALSE(slow.line().reading) << "its input should be left in the socket";
  EXPECT_FALSE(slow.closed());
  EXPECT_EQ(connect().ask("PING"), "+PONG\r\n");
  // It reads again, and gets all it asked for.
  slow.line().window = SIZE_MAX;
  std::size_t got = 0;
  for (int i = 0; i < 20; ++i) {
    engine().writable(slow.id());
    turn();
    got += slow.take().size();
  }
  EXPECT_EQ(got, 20 * (60'000 + std::string("$60000\r\n\r\n").size()));
  EXPECT_TRUE(slow.line().reading);
}

TEST_F(ConnectionsTest, AClientWhoseOutputPassesTheLimitIsCutAndItsWaitsEnd) {
  settings.output_max = 1000;
  restart();
  Client holder = connect();
  holder.ask("ACQUIRE a TTL 60000");
  Client slow = connect3();
  slow.ask("ACQUIRE a TTL 1000 WAIT 60000 ASYNC REQUEST abcdefghijklmnopqrstuv");
  slow.line().window = 0;
  slow.say("ECHO " + std::string(2000, 'x'));
  turn();
  EXPECT_TRUE(slow.closed());
  EXPECT_EQ(engine().patience(), Nanos(0)) << "its waits are still to be cancelled";
  turn();
  EXPECT_EQ(engine().totals().waiters, 0U);
  EXPECT_EQ(engine().connections().size(), 1U);
  EXPECT_EQ(engine().telemetry().connections_cut, 1U);
}

// Hard case 19. Were it left unread, its hang-up would be invisible behind what it sent.
TEST_F(ConnectionsTest, ABlockedClientThatSendsWithoutBoundIsCutAndLeavesTheQueue) {
  Client holder = connect();
  holder.ask("ACQUIRE a TTL 60000");
  Client waiter = connect();
  waiter.ask("ACQUIRE a TTL 60000 WAIT 60000");
  for (int i = 0; i < 100'000 && !waiter.closed(); ++i) {
    ASSERT_TRUE(waiter.line().reading);
    waiter.say("PING");
    if (i % 100 == 0) turn();
  }
  EXPECT_TRUE(waiter.closed());
  EXPECT_EQ(waiter.take().substr(0, 12), "-BUSY input:");
  EXPECT_EQ(engine().totals().waiters, 0U);
}

TEST_F(ConnectionsTest, LocksArePagedToTheEndAndEachIsSeenOnce) {
  Client client = connect();
  for (int i = 0; i < 50; ++i) client.ask("ACQUIRE p/" + std::to_string(i) + " TTL 60000");
  client.ask("ACQUIRE other TTL 60000");
  std::string cursor = "0";
  std::size_t seen = 0;
  do {
    const std::string page = client.ask("LOCKS PREFIX p/ COUNT 7 CURSOR " + cursor);
    for (std::size_t at = page.find("$4\r\nlock\r\n"); at != std::string::npos;
         at = page.find("$4\r\nlock\r\n", at + 1))
      ++seen;
    const auto start = page.find("\r\n", 4) + 2;
    cursor = page.substr(start, page.find("\r\n", start) - start);
  } while (cursor != "0");
  EXPECT_EQ(seen, 50U);
  EXPECT_EQ(client.ask("LOCKS CURSOR x").substr(0, 4), "-ERR");
}

TEST_F(ConnectionsTest, TheLogDistinguishesABreakThatHappenedFromOneThatDidNot) {
  Client client = connect();
  client.ask("ACQUIRE a TTL 1000");
  const auto last = [this] { return log.lines.empty() ? std::string() : log.lines.back(); };
  client.ask("BREAK a TOKEN 9 NOW REASON gone");
  EXPECT_TRUE(last().ends_with("did nothing: that token does not hold it")) << last();
  client.ask("BREAK a TOKEN 1 NOW REASON gone");
  EXPECT_TRUE(last().starts_with("BREAK NOW of token 1 on 'a' by ") && last().ends_with(": 'gone'"))
      << last();
  client.ask("RAISE 5000 REASON restored");
  EXPECT_TRUE(last().starts_with("RAISE to 5000 by ") && last().ends_with(": 'restored'"))
      << last();
  client.ask("RAISE 4000 REASON back");
  EXPECT_TRUE(last().ends_with(" was refused: 'back'")) << last();
}

TEST_F(ConnectionsTest, BreakNamesTheTokenAndRaiseMovesTheCounter) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 1000"));
  EXPECT_EQ(client.ask("BREAK a TOKEN 9 REASON gone"), ":0\r\n");
  EXPECT_EQ(client.ask("BREAK a TOKEN 1 REASON gone"), ":1\r\n");
  EXPECT_EQ(client.ask("RENEW " + lease), "-LOST broken: gone\r\n");
  EXPECT_EQ(client.ask("RELEASE " + lease), ":1\r\n");
  EXPECT_EQ(client.ask("RAISE 5000 REASON restored"), ":5000\r\n");
  EXPECT_EQ(client.ask("RAISE 4000 REASON back").substr(0, 4), "-ERR");
  EXPECT_EQ(token_in(client.ask("ACQUIRE a TTL 1000")), 5001);
  EXPECT_NE(client.ask("HISTORY a").find("released"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
