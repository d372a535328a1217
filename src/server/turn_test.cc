// The turn: order, durability, time.
#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

using TurnTest = EngineTest;

TEST_F(TurnTest, AcquireRenewReleaseInspectInOneBreath) {
  Client client = connect();
  const std::string grant = client.ask("ACQUIRE a TTL 15000");
  const std::string lease = lease_in(grant);
  ASSERT_EQ(lease.size(), 32U) << grant;
  EXPECT_EQ(token_in(grant), 1);
  EXPECT_EQ(client.ask("RENEW " + lease), ":15000\r\n");
  EXPECT_EQ(client.ask("RELEASE " + lease), ":1\r\n");
  // Hard case 7.
  EXPECT_EQ(client.ask("RELEASE " + lease), ":0\r\n");
  EXPECT_EQ(client.ask("RENEW " + lease), "-LOST released\r\n");
  EXPECT_EQ(client.ask("RENEW 00000000000000000000000000000000"), "-LOST unknown\r\n");
}

TEST_F(TurnTest, PipelinedRepliesLeaveInOrderInOneSend) {
  Client client = connect();
  client.send("PING\r\nACQUIRE a TTL 1000\r\nPING\r\nECHO x\r\n");
  turn();
  const std::string all = client.take();
  EXPECT_EQ(all.find("+PONG\r\n*12\r\n"), 0U) << all;
  EXPECT_EQ(all.substr(all.size() - 14), "+PONG\r\n$1\r\nx\r\n");
  EXPECT_EQ(client.line().sends, 1U);
}

// G2. The store completes later.
TEST_F(TurnTest, NothingIsSentBeforeItIsDurableAndReadsWaitForEarlierWrites) {
  Client writer = connect();
  Client reader = connect();
  const std::string old = lease_in(writer.ask("ACQUIRE old TTL 1000"));
  store.hold();
  writer.say("ACQUIRE a TTL 1000");
  reader.say("INSPECT a");
  turn();
  EXPECT_EQ(writer.take(), "");
  EXPECT_EQ(reader.take(), "");
  // A renewal speaks of nothing new.
  EXPECT_EQ(connect().ask("RENEW " + old), ":1000\r\n");
  ASSERT_TRUE(store.release_next());
  turn();
  EXPECT_FALSE(lease_in(writer.take()).empty());
  EXPECT_NE(reader.take().find("held"), std::string::npos);
}

TEST_F(TurnTest, RepliesBehindOneThatWaitsDoNotOvertakeIt) {
  Client client = connect();
  store.hold();
  client.send("ACQUIRE a TTL 1000\r\nPING\r\n");
  turn();
  client.ask("PING");
  EXPECT_EQ(client.take(), "");
  store.release();
  turn();
  const std::string all = client.take();
  EXPECT_EQ(all.substr(all.size() - 14), "+PONG\r\n+PONG\r\n");
}

// A grant's TTL begins when it is durable, by a clock read after the sync.
TEST_F(TurnTest, ATtlBeginsWhenTheGrantIsDurable) {
  Client client = connect();
  store.hold();
  client.say("ACQUIRE a TTL 1000");
  turn();
  live(5s);
  store.release();
  turn();
  EXPECT_FALSE(lease_in(client.take()).empty());
  live(900ms);
  EXPECT_NE(client.ask("INSPECT a").find("held"), std::string::npos);
  live(200ms);
  EXPECT_NE(client.ask("INSPECT a").find("free"), std::string::npos);
}

TEST_F(TurnTest, TheClockIsReadAfterTheSocketsAndBeforeAndAfterTheSync) {
  Client client = connect();
  turn();
  clock.reads = 0;
  client.send("ACQUIRE a TTL 1000\r\nACQUIRE b TTL 1000\r\nPING\r\n");
  EXPECT_EQ(clock.reads, 0);
  turn();
  EXPECT_EQ(clock.reads, 3);
}

// Hard case 36, as far as the server goes.
TEST_F(TurnTest, AFailedStoreEndsEverythingWithoutAnAnswer) {
  Client client = connect();
  Client other = connect();
  store.fail(Error{Code::kUnknown, "EIO"});
  client.say("ACQUIRE a TTL 1000");
  other.say("PING");
  turn();
  EXPECT_EQ(fatal, 1);
  other.say("PING");
  turn();
  EXPECT_EQ(client.take() + other.take(), "");
}

TEST_F(TurnTest, OneBatchPerTurnHoweverManyCommands) {
  Client a = connect();
  Client b = connect();
  const auto before = engine().telemetry().batches;
  a.send("ACQUIRE a TTL 1000\r\nACQUIRE b TTL 1000\r\n");
  b.send("ACQUIRE c TTL 1000\r\n");
  turn();
  EXPECT_EQ(engine().telemetry().batches, before + 1);
}

// Hard case 27. A pause of pawld itself beyond 250 ms does not count against anyone.
TEST_F(TurnTest, APauseOfPawldExpiresNoLease) {
  Client holder = connect();
  Client other = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 1000"));
  advance(60s);  // SIGSTOP … SIGCONT
  other.say("ACQUIRE a TTL 1000");
  turn();
  EXPECT_EQ(other.take(), "*-1\r\n");
  EXPECT_EQ(holder.ask("RENEW " + lease), ":1000\r\n");
}

// Hard case 9. Both in one turn: the renewal was read, so it wins; a turn later it has lost.
TEST_F(TurnTest, ARenewalReadInTheTurnItsLeaseFallsDueWins) {
  Client holder = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 200"));
  advance(200ms);
  EXPECT_EQ(holder.ask("RENEW " + lease), ":200\r\n");
  advance(210ms);
  turn();
  EXPECT_EQ(holder.ask("RENEW " + lease), "-LOST expired\r\n");
}

// An expiry may be spoken of only once it is durable.
TEST_F(TurnTest, LostWaitsForTheRecordOfTheExpiry) {
  Client holder = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 200"));
  store.hold();
  advance(210ms);
  turn();
  EXPECT_EQ(holder.ask("RENEW " + lease), "");
  store.release();
  turn();
  EXPECT_EQ(holder.take(), "-LOST expired\r\n");
}

// Hard case 28.
TEST_F(TurnTest, ARestartGivesEveryLeaseItsFullTtlAndMovesTokensForward) {
  Client holder = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 1000"));
  live(900ms);
  restart();
  live(900ms);
  Client again = connect();
  EXPECT_EQ(again.ask("RENEW " + lease), ":1000\r\n");
  EXPECT_GT(token_in(again.ask("ACQUIRE b TTL 1000")), 1);
}

// Hard case 2.
TEST_F(TurnTest, ARetryAfterALostReplyGetsTheSameLease) {
  const std::string command = "ACQUIRE a TTL 1000 REQUEST abcdefghijklmnopqrstuv";
  Client first = connect();
  const std::string grant = first.ask(command);
  first.hang_up();
  turn();
  EXPECT_EQ(connect().ask(command), grant);
  restart();
  EXPECT_EQ(connect().ask(command), grant);
}

// Hard cases 4 and 5.
TEST_F(TurnTest, ARequestIdThatIsOverOrMeansSomethingElseIsRefused) {
  Client client = connect();
  const std::string id = " REQUEST abcdefghijklmnopqrstuv";
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 1000" + id));
  EXPECT_EQ(client.ask("ACQUIRE b TTL 1000" + id).substr(0, 10), "-CONFLICT ");
  EXPECT_EQ(client.ask("ACQUIRE a TTL 2000" + id).substr(0, 10), "-CONFLICT ");
  client.ask("RELEASE " + lease);
  EXPECT_EQ(client.ask("ACQUIRE a TTL 1000" + id), "-LOST granted as 1, released\r\n");
}

TEST_F(TurnTest, AFullDiskRefusesNewGrantsOnly) {
  Client client = connect();
  const std::string request = "ACQUIRE a TTL 1000 REQUEST abcdefghijklmnopqrstuv";
  const std::string grant = client.ask(request);
  store.set_room(false);
  EXPECT_EQ(client.ask("ACQUIRE b TTL 1000").substr(0, 6), "-FULL ");
  EXPECT_EQ(client.ask(request), grant);
  EXPECT_EQ(client.ask("RENEW " + lease_in(grant)), ":1000\r\n");
  EXPECT_EQ(client.ask("RELEASE " + lease_in(grant)), ":1\r\n");
  store.set_room(true);
  EXPECT_FALSE(lease_in(client.ask("ACQUIRE b TTL 1000")).empty());
}

TEST_F(TurnTest, AFullDiskIsLoggedWhenItBeginsAndWhenItEnds) {
  Client client = connect();
  turn();
  store.set_space({.free = 1000, .needed = 5000, .volume_needed = 9000});
  store.set_room(false);
  turn();
  turn();
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("the disk is full"), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[0].find("1000 bytes are free"), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[0].find("5000 are needed"), std::string::npos) << log.lines[0];
  EXPECT_NE(client.ask("STATUS").find("$5\r\nstate\r\n$4\r\nfull\r\n"), std::string::npos);
  store.set_space({.free = 6000, .needed = 5000, .volume_needed = 9000});
  store.set_room(true);
  turn();
  ASSERT_EQ(log.lines.size(), 2U);
  EXPECT_NE(log.lines[1].find("granted again: 6000 bytes"), std::string::npos) << log.lines[1];
  EXPECT_NE(client.ask("STATUS").find("$5\r\nstate\r\n$8\r\ngranting\r\n"), std::string::npos);
}

TEST_F(TurnTest, AnIdleMinuteIsNoPauseAndIsNotLogged) {
  for (int second = 0; second < 60; ++second) {
    engine().expect_sleep(std::min<Nanos>(engine().patience(), 1s));
    advance(1s + 1ms);
    turn();
  }
  EXPECT_EQ(engine().paused(), Nanos(0));
  EXPECT_TRUE(log.lines.empty()) << log.lines[0];
}

TEST_F(TurnTest, APauseIsLoggedOnceWithItsLength) {
  connect().ask("ACQUIRE a TTL 1000");
  engine().expect_sleep(engine().patience());
  advance(engine().patience() + 4s);
  turn();
  turn();
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("stood still for 4.0 s"), std::string::npos) << log.lines[0];
}

TEST_F(TurnTest, ACommitThatHungIsLoggedAsThat) {
  store.hold();
  connect().say("ACQUIRE a TTL 1000");
  turn();
  advance(3s);
  store.release();
  turn();
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("a commit took 3.0 s"), std::string::npos) << log.lines[0];
}

TEST_F(TurnTest, ReadingTheStoreIsNoPause) {
  connect().ask("ACQUIRE a TTL 1000");
  restart();
  log.lines.clear();
  Engine slow(settings,
              EngineParts{store, clock, random, network, log, [this](const Error&) { ++fatal; }});
  store.crash();
  advance(5s);
  slow.run_turn();  // As the loop does while it loads.
  advance(5s);
  ASSERT_TRUE(slow.load());
  EXPECT_EQ(slow.paused(), Nanos(0));
  EXPECT_TRUE(log.lines.empty()) << log.lines[0];
}

TEST_F(TurnTest, TheLoopMaySleepLongOnlyWhenNothingRunsOut) {
  EXPECT_EQ(engine().patience(), Nanos::max());
  Client client = connect();
  client.ask("ACQUIRE a TTL 1000");
  EXPECT_LE(engine().patience(), kWakeEvery);
  EXPECT_GT(engine().patience(), Nanos(0));
}

TEST_F(TurnTest, StoppingAnswersWhatIsDurableAndClosesWaitersWithoutAReply) {
  Client holder = connect();
  Client waiter = connect();
  const std::string grant = holder.ask("ACQUIRE a TTL 1000");
  waiter.ask("ACQUIRE a TTL 1000 WAIT 1000");
  store.hold();
  holder.say("RELEASE " + lease_in(grant));
  turn();
  engine().stop();
  EXPECT_TRUE(holder.closed() && waiter.closed());
  EXPECT_EQ(holder.take() + waiter.take(), "");
}

// G10. What a thousand clients pipeline must not make a turn of seconds: a renewal beside it would
// come too late.
TEST_F(TurnTest, AFloodDoesNotDelayASingleCommand) {
  Client holder = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE held TTL 1000"));
  std::vector<Client> flood;
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += "PING\r\n";
  for (int i = 0; i < 100; ++i) flood.push_back(connect().send(pings));
  const std::uint64_t before = engine().telemetry().commands_served;
  holder.say("RENEW " + lease);
  turn();
  EXPECT_EQ(holder.take(), ":1000\r\n");
  EXPECT_LT(engine().telemetry().commands_served - before, 10'000U)
      << "one turn served nearly all of it";
  for (Client& client : flood) EXPECT_NE(client.take(), "") << "somebody got no share";
  for (int turns = 0; engine().patience() == Nanos(0); ++turns) {
    ASSERT_LT(turns, 1000) << "the rest is never served";
    turn();
  }
  EXPECT_EQ(engine().telemetry().commands_served - before, 100U * 1000U + 1U);
}

TEST_F(TurnTest, InputBeforeAHangUpIsServedOverSeveralTurns) {
  Client client = connect();
  std::string work;
  for (int i = 0; i < 10'000; ++i) work += "ACQUIRE lock/" + std::to_string(i) + " TTL 60000\r\n";
  for (std::size_t at = 0; at < work.size(); at += 16384)
    client.send(std::string_view(work).substr(at, 16384));
  client.hang_up();
  turn();
  EXPECT_FALSE(client.closed());
  while (engine().patience() == Nanos(0)) turn();
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(engine().totals().leases, 10'000U);
}

}  // namespace
}  // namespace pawl::server
