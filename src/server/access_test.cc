// Users: who a connection speaks for, what a wrong secret costs, what a user's prefixes hide, and
// what a reload does.
#include <gmock/gmock.h>

#include "server/testlib/access_fixture.h"

namespace pawl::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kRequest = "REQUEST 1234567890123456789012";

// --- Authenticating ------------------------------------------------------------------------------

TEST_F(AccessTest, NothingButTheHandshakeIsServedBeforeAuth) {
  Client client = connect();
  EXPECT_THAT(client.ask("PING"), AllOf(StartsWith("-NOAUTH PING"), HasSubstr("AUTH user secret")));
  EXPECT_THAT(client.ask("ACQUIRE a TTL 1000"), StartsWith("-NOAUTH"));
  EXPECT_EQ(engine().totals().leases, 0U);
  EXPECT_EQ(client.ask("AUTH worker secret-of-worker"), "+OK\r\n");
  EXPECT_EQ(client.ask("PING"), "+PONG\r\n");
  EXPECT_THAT(client.ask("ACQUIRE a TTL 1000"), HasSubstr("lease"));
}

TEST_F(AccessTest, HelloAuthenticatesAndChoosesTheProtocolAtOnce) {
  Client client = connect3_as("worker");
  EXPECT_THAT(client.ask("ACQUIRE a TTL 1000"), StartsWith("%6"));
}

TEST_F(AccessTest, ASecretWithoutAUserIsRefusedWithAHintAndCostsNothing) {
  Client client = connect();
  EXPECT_THAT(client.ask("AUTH secret-of-worker"),
              AllOf(StartsWith("-ERR"), HasSubstr("AUTH user secret")));
}

TEST_F(AccessTest, AuthChangesTheUserAndResetRemovesIt) {
  Client client = connect_as("boss");
  EXPECT_EQ(client.ask("AUTH looker secret-of-looker"), "+OK\r\n");
  EXPECT_EQ(client.ask("ACQUIRE a TTL 1000"),
            "-NOPERM ACQUIRE needs the role use; user looker has observe\r\n");
  EXPECT_EQ(client.ask("RESET"), "+RESET\r\n");
  EXPECT_THAT(client.ask("PING"), StartsWith("-NOAUTH"));
}

TEST_F(AccessTest, ConnectionsKeptForRenewalsCanAuthenticate) {
  settings.connections_max = 1;
  settings.connections_reserved = 1;
  start();
  engine().set_users(Users(everyone()));
  Client first = connect_as("worker");
  const std::string lease = lease_in(first.ask("ACQUIRE a TTL 10000"));
  Client reserved = connect_as("worker");
  EXPECT_EQ(reserved.ask("RENEW " + lease), ":10000\r\n");
  EXPECT_THAT(reserved.ask("ACQUIRE b TTL 1000"), StartsWith("-BUSY"));
}

TEST_F(AccessTest, AUserIdentifiedByTheDriverNeedsNoSecret) {
  Client stranger = connect("stranger");
  EXPECT_THAT(stranger.ask("PING"), StartsWith("-NOAUTH"));
  Client client = connect("worker");
  EXPECT_THAT(client.ask("ACQUIRE a TTL 1000"), HasSubstr("lease"));
}

// --- A wrong secret ------------------------------------------------------------------------------

TEST_F(AccessTest, AWrongSecretDelaysOnlyItsOwnConnection) {
  Client guesser = connect(), other = connect_as("worker");
  for (const char* guess :
       {"AUTH worker wrong", "AUTH stranger wrong", "HELLO 3 AUTH worker wrong"}) {
    EXPECT_EQ(guesser.ask(std::string(guess) + "\r\nPING"), "") << guess;
    live(999ms);
    EXPECT_EQ(guesser.take(), "") << guess;
    EXPECT_EQ(other.ask("PING"), "+PONG\r\n");
    EXPECT_LE(engine().patience(), 1ms) << "the loop is told when";
    live(1ms);
    EXPECT_THAT(guesser.take(), AllOf(StartsWith("-WRONGPASS"), HasSubstr("\r\n-NOAUTH PING")))
        << guess;
  }
  EXPECT_EQ(engine().telemetry().wrong_secrets, 3U);
  EXPECT_EQ(guesser.ask("AUTH worker secret-of-worker"), "+OK\r\n");
}

TEST_F(AccessTest, AWrongSecretKeepsTheUser) {
  Client client = connect_as("worker");
  EXPECT_EQ(client.ask("AUTH boss wrong"), "");
  live(1s);
  EXPECT_THAT(client.take(), StartsWith("-WRONGPASS"));
  EXPECT_THAT(client.ask("ACQUIRE a TTL 1000"), HasSubstr("lease"));
}

TEST_F(AccessTest, HangupDoesNotMultiplyTheAuthDelay) {
  Client guesser = connect();
  for (int i = 0; i < 100; ++i) guesser.say("AUTH worker wrong" + std::to_string(i));
  guesser.hang_up();
  turn();
  EXPECT_EQ(engine().connections().size(), 1U);
  live(1s);
  turn();
  EXPECT_THAT(guesser.take(), StartsWith("-WRONGPASS")) << "half-closed, it may still read";
  EXPECT_TRUE(guesser.closed());
  EXPECT_EQ(engine().connections().size(), 0U);
  EXPECT_EQ(engine().telemetry().wrong_secrets, 1U);
}

TEST_F(AccessTest, AConnectionThatIsCutWhileItWaitsLeavesNoTimerBehind) {
  settings.output_max = 0;  // Whatever is left unread is too much.
  start();
  engine().set_users(Users(everyone()));
  Client guesser = connect();
  guesser.line().window = 0;
  guesser.say("AUTH worker").say("AUTH worker wrong");
  turn();
  EXPECT_TRUE(guesser.closed());
  turn();
  EXPECT_EQ(engine().connections().size(), 0U);
  live(2s);
  EXPECT_EQ(engine().patience(), Nanos::max());
}

// --- Prefixes ------------------------------------------------------------------------------------

TEST_F(AccessTest, LocksShowsOnlyNamesWithinTheUsersPrefixes) {
  Client boss = connect_as("boss"), limited = connect_as("limited");
  for (const char* lock : {"mine", "mine/a", "minerals", "other"}) {
    boss.ask("ACQUIRE " + std::string(lock) + " TTL 10000");
  }
  EXPECT_THAT(limited.ask("LOCKS"), AllOf(HasSubstr("mine\r\n"), HasSubstr("mine/a\r\n"),
                                          Not(HasSubstr("minerals")), Not(HasSubstr("other"))));
  EXPECT_THAT(boss.ask("LOCKS"), AllOf(HasSubstr("minerals"), HasSubstr("other")));
}

TEST_F(AccessTest, APageOfLocksThatAreAllHiddenCostsBoundedWork) {
  Client boss = connect_as("boss"), limited = connect_as("limited");
  for (int i = 0; i < 12'000; ++i) {
    boss.say("ACQUIRE other/" + std::to_string(i) + " TTL 60000");
    if (i % 500 == 499) turn();
  }
  boss.ask("ACQUIRE mine TTL 60000");
  EXPECT_EQ(limited.ask("LOCKS"), "*2\r\n$5\r\n10000\r\n*0\r\n");
  EXPECT_THAT(limited.ask("LOCKS CURSOR 10000"),
              AllOf(StartsWith("*2\r\n$1\r\n0\r\n*1"), HasSubstr("mine")));
}

TEST_F(AccessTest, LocksOfTheSameLeaseOutsideThePrefixesAreNotNamed) {
  Client boss = connect_as("boss"), limited = connect_as("limited");
  const std::string lease = lease_in(boss.ask("ACQUIRE mine/a AND other/b TTL 10000"));
  EXPECT_THAT(limited.ask("INSPECT mine/a"), AllOf(HasSubstr("mine/a"), Not(HasSubstr("other/b"))));
  EXPECT_THAT(limited.ask("LOCKS"), AllOf(HasSubstr("mine/a"), Not(HasSubstr("other/b"))));
  EXPECT_THAT(boss.ask("INSPECT mine/a"), HasSubstr("other/b"));
  boss.ask("RELEASE " + lease);
  EXPECT_THAT(limited.ask("HISTORY mine/a"), AllOf(HasSubstr("mine/a"), Not(HasSubstr("other/b"))));
  EXPECT_THAT(boss.ask("HISTORY mine/a"), HasSubstr("other/b"));
}

TEST_F(AccessTest, EventsOutsideThePrefixesAreNotSent) {
  Client boss = connect_as("boss"), limited = connect3_as("limited");
  limited.ask("OBSERVE mi");
  boss.ask("ACQUIRE minerals TTL 10000");
  boss.ask("ACQUIRE mine/a TTL 10000");
  boss.ask("ACQUIRE other TTL 10000");
  turn();
  EXPECT_THAT(limited.take(),
              AllOf(HasSubstr("granted"), HasSubstr("mine/a"), Not(HasSubstr("minerals"))));
  EXPECT_THAT(limited.ask("OBSERVE \"\""), Not(StartsWith("-"))) << "all it may see";
  boss.ask("ACQUIRE other/2 TTL 10000");
  boss.ask("ACQUIRE mine/b TTL 10000");
  EXPECT_THAT(limited.take(), AllOf(HasSubstr("mine/b"), Not(HasSubstr("other/2"))));
}

TEST_F(AccessTest, TheLogNamesTheUserOfABackupFromBeginningToEnd) {
  Client boss = connect_as("boss");
  const std::size_t before = log.lines.size();
  boss.ask("BACKUP /nowhere");  // A store in memory cannot be backed up.
  ASSERT_EQ(log.lines.size(), before + 2);
  for (std::size_t i = before; i < log.lines.size(); ++i)
    EXPECT_THAT(log.lines[i], StartsWith("BACKUP to /nowhere by boss at "));
}

// A lease ends as a whole: to break it is to break it on every lock.
TEST_F(AccessTest, ALeaseThatAlsoHoldsSomethingOutsideThePrefixesIsNotBroken) {
  Client boss = connect_as("boss"), limited = connect_as("limited");
  const auto both = token_in(boss.ask("ACQUIRE mine/a AND other/b TTL 10000"));
  EXPECT_THAT(limited.ask("BREAK mine/a TOKEN " + std::to_string(both) + " NOW REASON why"),
              AllOf(StartsWith("-NOPERM this lease also holds"), Not(HasSubstr("other/b"))));
  EXPECT_EQ(engine().totals().leases, 1U);
  const auto own = token_in(boss.ask("ACQUIRE mine/b TTL 10000"));
  EXPECT_EQ(limited.ask("BREAK mine/b TOKEN " + std::to_string(own) + " NOW REASON why"), ":1\r\n");
  EXPECT_EQ(boss.ask("BREAK mine/a TOKEN " + std::to_string(both) + " NOW REASON why"), ":1\r\n");
}

TEST_F(AccessTest, ALeaseMayBeRenewedByAnyUserThatKnowsIt) {
  Client worker = connect_as("worker"), limited = connect_as("limited");
  const std::string lease = lease_in(worker.ask("ACQUIRE other TTL 10000"));
  EXPECT_EQ(limited.ask("RENEW " + lease), ":10000\r\n");
  EXPECT_EQ(limited.ask("RELEASE " + lease), ":1\r\n");
}

TEST_F(AccessTest, OnlyAdminsSeeTheConnectionsOfOthers) {
  Client worker = connect_as("worker"), boss = connect_as("boss");
  EXPECT_THAT(worker.ask("CLIENT LIST"),
              AllOf(HasSubstr("user=worker"), Not(HasSubstr("user=boss"))));
  EXPECT_THAT(boss.ask("CLIENT LIST"), AllOf(HasSubstr("user=worker"), HasSubstr("user=boss")));
}

// --- Request ids ---------------------------------------------------------------------------------

TEST_F(AccessTest, TheSameRequestIdOfTwoUsersIsTwoRequests) {
  Client worker = connect_as("worker"), boss = connect_as("boss");
  const std::string command = std::string("ACQUIRE a TTL 10000 ") + kRequest;
  const std::string mine = worker.ask(command);
  EXPECT_THAT(mine, HasSubstr("lease"));
  EXPECT_EQ(boss.ask(command), "*-1\r\n")
      << "the other user's lease must not leak to who guesses its request id";
  EXPECT_EQ(worker.ask(command), mine);
  EXPECT_EQ(boss.ask("CANCEL 1234567890123456789012"), ":0\r\n");
}

TEST_F(AccessTest, AUserCannotCancelOrTakeOverTheWaitOfAnother) {
  Client holder = connect_as("boss"), worker = connect3_as("worker"), boss = connect3_as("boss");
  holder.ask("ACQUIRE a TTL 60000");
  EXPECT_THAT(worker.ask(std::string("ACQUIRE a TTL 1000 WAIT 60000 ASYNC ") + kRequest),
              HasSubstr("queued"));
  EXPECT_EQ(boss.ask("CANCEL 1234567890123456789012"), ":0\r\n");
  EXPECT_THAT(boss.ask(std::string("ACQUIRE a TTL 1000 WAIT 60000 ASYNC ") + kRequest),
              HasSubstr("position\r\n:2"));
  EXPECT_EQ(worker.take(), "") << "it was not superseded";
  EXPECT_THAT(worker.ask("CANCEL 1234567890123456789012"), HasSubstr(":1\r\n"));
}

TEST_F(AccessTest, ScopedRequestIdsAreRememberedOverARestart) {
  const std::string command = std::string("ACQUIRE a TTL 10000 ") + kRequest;
  const std::string granted = connect_as("worker").ask(command);
  restart();
  engine().set_users(Users(everyone()));
  EXPECT_EQ(connect_as("worker").ask(command), granted);
  EXPECT_EQ(connect_as("boss").ask(command), "*-1\r\n");
}

TEST_F(AccessTest, RequestIdsFromBeforeThereWereUsersAreLoadedAsTheyWere) {
  start();
  const std::string command = std::string("ACQUIRE a TTL 10000 ") + kRequest;
  const std::string granted = connect().ask(command);
  restart();
  EXPECT_EQ(connect().ask(command), granted);
}

// --- Reloading -----------------------------------------------------------------------------------

TEST_F(AccessTest, AReloadClosesConnectionsOfChangedUsersAndKeepsTheirLeases) {
  Client worker = connect_as("worker"), boss = connect_as("boss"), looker = connect_as("looker"),
         limited = connect_as("limited"), stranger = connect();
  const std::string lease = lease_in(worker.ask("ACQUIRE a TTL 10000"));
  engine().set_users(
      Users({user("boss", wire::Access::kAdmin), user("looker", wire::Access::kUse),
             user("limited", wire::Access::kAdmin, {std::string(kMine)}, "another secret")}));
  EXPECT_EQ(engine().patience(), Nanos(0)) << "they are told at once";
  turn();
  for (Client* gone : {&worker, &looker, &limited}) {
    EXPECT_THAT(gone->take(), StartsWith("-NOAUTH users:"));
    EXPECT_TRUE(gone->closed());
  }
  EXPECT_FALSE(stranger.closed());
  EXPECT_EQ(boss.ask("RENEW " + lease), ":10000\r\n") << "leases stay";
  Client again = connect_as("looker");
  EXPECT_THAT(again.ask("ACQUIRE b TTL 1000"), HasSubstr("lease")) << "with the new role";
}

TEST_F(AccessTest, AWaiterWhoseUserIsRemovedIsNeverGranted) {
  Client boss = connect_as("boss"), blocking = connect_as("worker"), async = connect3_as("worker");
  const std::string lease = lease_in(boss.ask("ACQUIRE a TTL 60000"));
  EXPECT_EQ(blocking.ask("ACQUIRE a TTL 1000 WAIT 60000"), "");
  EXPECT_THAT(async.ask(std::string("ACQUIRE a TTL 1000 WAIT 60000 ASYNC ") + kRequest),
              HasSubstr("queued"));
  boss.say("RELEASE " + lease);
  engine().set_users(Users({user("boss", wire::Access::kAdmin)}));
  turn();
  EXPECT_THAT(blocking.take(), StartsWith("-NOAUTH users:"));
  EXPECT_THAT(async.take(), StartsWith("-NOAUTH users:"));
  EXPECT_TRUE(blocking.closed() && async.closed());
  EXPECT_EQ(engine().totals().leases, 0U);
  EXPECT_EQ(engine().totals().waiters, 0U);
}

TEST_F(AccessTest, AReloadDuringAnAuthDelayIsHarmless) {
  Client client = connect_as("worker");
  client.ask("AUTH boss wrong");
  engine().set_users(Users({}));
  turn();
  EXPECT_TRUE(client.closed());
  turn();
  EXPECT_EQ(engine().connections().size(), 0U);
  live(2s);
}

TEST_F(AccessTest, HolderOfABrokenLeaseIsToldByWhomAndWhy) {
  Client holder = connect_as("worker"), boss = connect_as("boss");
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 1000"));
  ASSERT_EQ(boss.ask("BREAK a TOKEN 1 REASON gone"), ":1\r\n");
  EXPECT_EQ(holder.ask("RENEW " + lease), "-LOST broken by boss: gone\r\n");
}

}  // namespace
}  // namespace pawl::server
