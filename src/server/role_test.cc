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

}  // namespace
}  // namespace pawl::server
