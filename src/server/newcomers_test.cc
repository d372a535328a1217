// Connections that have not authenticated, where users exist: how many there may be, how long, and
// what they can hold.
#include <gmock/gmock.h>

#include "server/testlib/access_fixture.h"

namespace pawl::server {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kAuth = "AUTH worker secret-of-worker";

class NewcomersTest : public AccessTest {
 protected:
  void SetUp() override {
    settings.newcomers_max = 3;
    settings.connections_max = 2;
    settings.connections_reserved = 1;
    start_with_users();
  }
  void start_with_users() {
    start();
    engine().set_users(Users(everyone()));
  }
};

// --- Quota ---------------------------------------------------------------------------------------

TEST_F(NewcomersTest, StrangersTakeNoPlaceOfUsers) {
  std::vector<Client> strangers;
  for (int i = 0; i < 3; ++i) strangers.push_back(connect());
  Client holder = connect_as("worker");
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 10000"));
  for (int i = 0; i < 3; ++i) strangers.push_back(connect());
  Client second = connect_as("worker");
  EXPECT_THAT(second.ask("ACQUIRE b TTL 1000"), HasSubstr("lease")) << "an ordinary connection";
  for (int i = 0; i < 3; ++i) strangers.push_back(connect());
  Client reserved = connect_as("worker");
  EXPECT_EQ(reserved.ask("RENEW " + lease), ":10000\r\n");
  EXPECT_EQ(holder.ask("RENEW " + lease), ":10000\r\n");
}

TEST_F(NewcomersTest, OfTooManyASilentOneIsClosedWithAnError) {
  Client first = connect(), second = connect(), third = connect();
  first.say(kAuth);  // Received, and not served yet.
  Client fourth = connect();
  EXPECT_FALSE(first.closed() || fourth.closed());
  EXPECT_NE(second.closed(), third.closed());
  Client& gone = second.closed() ? second : third;
  EXPECT_THAT(gone.take(), StartsWith("-BUSY unauthenticated: too many"));
  turn();
  EXPECT_EQ(first.take(), "+OK\r\n");
  EXPECT_EQ(engine().connections().newcomers(), 2U);
  EXPECT_EQ(engine().telemetry().newcomers_displaced, 1U);
  EXPECT_EQ(engine().telemetry().newcomers_late, 0U);
}

TEST_F(NewcomersTest, OnesThatTalkWithoutAuthenticatingMakeRoomAsWell) {
  std::vector<Client> talkers{connect(), connect(), connect()};
  for (Client& talker : talkers) talker.say("PING");
  Client user = connect();
  EXPECT_EQ(talkers[0].closed() + talkers[1].closed() + talkers[2].closed(), 1);
  EXPECT_EQ(user.ask(kAuth), "+OK\r\n");
}

TEST_F(NewcomersTest, BeyondAllLimitsAUserIsRefusedByNameAndClosed) {
  connect_as("worker");
  connect_as("worker");
  connect_as("worker");
  Client refused = connect();
  EXPECT_EQ(refused.ask(kAuth),
            "-BUSY connections: the limit of 2 and 1 more for renewals is reached\r\n");
  EXPECT_TRUE(refused.closed());
  EXPECT_EQ(engine().telemetry().connections_refused, 1U);
  Client certified = connect("worker");
  EXPECT_THAT(certified.take(), StartsWith("-BUSY connections:"));
  EXPECT_TRUE(certified.closed());
}

TEST_F(NewcomersTest, AUserNamedByItsCertificateIsNoNewcomer) {
  std::vector<Client> strangers{connect(), connect(), connect()};
  Client certified = connect("worker");
  EXPECT_EQ(certified.ask("PING"), "+PONG\r\n");
  for (Client& stranger : strangers) EXPECT_FALSE(stranger.closed());
}

TEST_F(NewcomersTest, RequestsOfHttpAreBoundedThere) {
  for (std::uint64_t id = 100; id < 110; ++id) {
    ASSERT_TRUE(engine().connected(ConnectionId{id}, "http:10.0.0.7:1"));
    engine().received(ConnectionId{id}, "AUTH worker " + std::string(4000, 'x') + "\r\n");
  }
  EXPECT_EQ(engine().connections().newcomers(), 0U);
  turn();
  live(1s);
  for (std::uint64_t id = 100; id < 110; ++id)
    EXPECT_THAT(network.lines[id].received, StartsWith("-WRONGPASS"));
  EXPECT_THAT(connect_as("worker").ask("ACQUIRE a TTL 1000"), HasSubstr("lease"))
      << "they have no place among the users";
}

// --- Time ----------------------------------------------------------------------------------------

TEST_F(NewcomersTest, ASilentStrangerIsClosedAfterTenSeconds) {
  Client stranger = connect();
  EXPECT_EQ(engine().patience(), kWakeEvery) << "the loop is told";
  live(9999ms);
  EXPECT_FALSE(stranger.closed());
  live(1ms);
  EXPECT_TRUE(stranger.closed());
  EXPECT_THAT(stranger.take(), StartsWith("-BUSY unauthenticated: this connection has not auth"));
  EXPECT_EQ(engine().connections().size(), 0U);
  EXPECT_EQ(engine().telemetry().newcomers_late, 1U);
  EXPECT_EQ(engine().patience(), Nanos::max());
}

TEST_F(NewcomersTest, TalkingDoesNotProlongTheTimeToAuthenticate) {
  Client pinging = connect(), dripping = connect(), guessing = connect();
  guessing.say("AUTH worker wrong");
  for (int second = 0; second < 10; ++second) {
    EXPECT_FALSE(pinging.closed() || dripping.closed() || guessing.closed()) << second;
    pinging.say("PING");
    dripping.send(std::string("AUTH worker ").substr(static_cast<std::size_t>(second), 1));
    guessing.say("AUTH worker wrong");
    live(1s);
  }
  EXPECT_TRUE(pinging.closed());
  EXPECT_TRUE(dripping.closed());
  EXPECT_TRUE(guessing.closed());
  live(2s);
  EXPECT_EQ(engine().patience(), Nanos::max()) << "no delay is left behind";
}

TEST_F(NewcomersTest, AnAuthThatArrivesAtTheLastMomentIsInTime) {
  Client user = connect();
  live(9999ms);
  advance(1ms);
  EXPECT_EQ(user.ask(kAuth), "+OK\r\n");
  live(20s);
  EXPECT_EQ(user.ask("PING"), "+PONG\r\n");
}

TEST_F(NewcomersTest, OneThatReadsNothingIsClosedInTimeAsWell) {
  Client stranger = connect();
  stranger.line().window = 0;
  for (int i = 0; i < 1000; ++i) stranger.say("PING");
  live(10s);
  EXPECT_TRUE(stranger.closed());
  EXPECT_EQ(engine().connections().size(), 0U);
}

TEST_F(NewcomersTest, ResetMakesAConnectionANewcomerAgain) {
  Client user = connect_as("worker");
  connect_as("worker");
  live(60s);
  EXPECT_EQ(user.ask("RESET"), "+RESET\r\n");
  EXPECT_EQ(engine().connections().newcomers(), 1U);
  EXPECT_THAT(connect_as("worker").ask("ACQUIRE a TTL 1000"), HasSubstr("lease"))
      << "its place is free";
  live(9s);
  EXPECT_FALSE(user.closed());
  live(1s);
  EXPECT_TRUE(user.closed());
}

TEST_F(NewcomersTest, ResetDisplacesAnotherWhenThereAreTooMany) {
  Client user = connect_as("worker");
  Client first = connect(), second = connect(), third = connect();
  EXPECT_EQ(user.ask("RESET"), "+RESET\r\n");
  EXPECT_EQ(first.closed() + second.closed() + third.closed(), 1);
  EXPECT_EQ(user.ask(kAuth), "+OK\r\n");
}

TEST_F(NewcomersTest, ARemovedUserThatReadsNothingKeepsNoPlace) {
  Client user = connect_as("worker");
  user.line().window = 0;
  engine().set_users(Users({}));
  turn();
  EXPECT_FALSE(user.closed()) << "it is owed an error";
  live(10s);
  EXPECT_TRUE(user.closed());
}

TEST_F(NewcomersTest, WithoutUsersASilentConnectionStays) {
  start();
  Client silent = connect();
  live(60s);
  EXPECT_FALSE(silent.closed());
  EXPECT_EQ(engine().connections().newcomers(), 0U);
}

// --- Memory --------------------------------------------------------------------------------------

TEST_F(NewcomersTest, ACommandOfAStrangerIsSmall) {
  Client announced = connect();
  announced.send("*2\r\n$4\r\nAUTH\r\n$60000\r\n");
  turn();
  EXPECT_THAT(announced.take(), StartsWith("-TOOLONG a command takes at most 1024 bytes in all "
                                           "until the connection has authenticated"));
  EXPECT_TRUE(announced.closed());
  Client line = connect();
  line.send(std::string(1024, 'x'));
  turn();
  EXPECT_TRUE(line.closed());
}

TEST_F(NewcomersTest, TheLongestHelloFits) {
  Client user = connect();
  const std::string hello =
      "HELLO 3 AUTH worker " + secret_of("worker") + " SETNAME " + std::string(128, 'n');
  EXPECT_THAT(user.ask(hello), StartsWith("%7"));
}

TEST_F(NewcomersTest, BehindAuthACommandMayBeLarge) {
  Client user = connect();
  user.send(std::string(kAuth) + "\r\n*2\r\n$4\r\nECHO\r\n$5000\r\n");
  turn();
  user.send(std::string(5000, 'x') + "\r\n");
  turn();
  EXPECT_THAT(user.take(), EndsWith("xxx\r\n"));
}

TEST_F(NewcomersTest, AStrangerHoldsLittleInputAndOutput) {
  Client guessing = connect();
  guessing.say("AUTH worker wrong");
  guessing.send(std::string(3000, '\n'));
  turn();
  EXPECT_FALSE(guessing.line().reading) << "the rest stays in the socket";
  Client deaf = connect();
  deaf.line().window = 0;
  for (int i = 0; i < 1000; ++i) deaf.say("PING");
  turn();
  EXPECT_LT(engine().telemetry().commands_served, 500U) << "what it does not read is not written";
}

}  // namespace
}  // namespace pawl::server
