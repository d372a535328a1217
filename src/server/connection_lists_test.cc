// Connections alone: limits, lists and counts.
#include "server/connections.h"

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class ConnectionListsTest : public testing::Test {
 protected:
  Session& add(std::uint64_t id, std::string_view peer = "peer") {
    return *connections.add(ConnectionId{id}, peer, Tick{});
  }

  FakeNetwork network;
  Telemetry telemetry;
  Connections connections{network, {.ordinary = 2, .reserved = 1}, telemetry};
};

TEST_F(ConnectionListsTest, BeyondBothLimitsAConnectionIsRefusedAndClosed) {
  for (std::uint64_t id = 1; id <= 3; ++id)
    EXPECT_NE(connections.add(ConnectionId{id}, "peer", Tick{}), nullptr);
  EXPECT_EQ(connections.add(ConnectionId{4}, "peer", Tick{}), nullptr);
  EXPECT_TRUE(network.lines[4].closed);
  EXPECT_TRUE(network.lines[4].received.starts_with("-BUSY connections:"));
  EXPECT_EQ(telemetry.connections, 4U);
  EXPECT_EQ(telemetry.connections_refused, 1U);
}

TEST_F(ConnectionListsTest, AReservedConnectionBecomesOrdinaryWhenThereIsRoom) {
  Session& first = add(1);
  add(2);
  Session& third = add(3);
  EXPECT_FALSE(connections.is_reserved(first));
  EXPECT_TRUE(connections.is_reserved(third));
  connections.close(first);
  connections.erase_closed_sessions();
  EXPECT_FALSE(connections.is_reserved(third));
  EXPECT_EQ(third.place, Place::kOrdinary);
}

TEST_F(ConnectionListsTest, ASessionIsListedOnceHoweverOftenItIsMarked) {
  Session& session = add(1);
  connections.receive(session.id(), "PING");
  connections.receive(session.id(), "\r\n");
  EXPECT_EQ(connections.ready().size(), 1U);
  session.in_ready = false;
  connections.postpone(session);
  connections.next_turn();
  EXPECT_EQ(connections.ready().size(), 1U) << "a postponed one is ready in the next turn";
  connections.hang_up(session.id());
  connections.hang_up(session.id());
  EXPECT_EQ(connections.take_hangups().size(), 1U);
  EXPECT_TRUE(connections.take_hangups().empty());
}

TEST_F(ConnectionListsTest, AClosedSessionStaysWhileItHasWaits) {
  Session& session = add(1);
  session.waits = 1;
  connections.close(session);
  EXPECT_EQ(connections.find(ConnectionId{1}), nullptr);
  connections.erase_closed_sessions();
  EXPECT_EQ(connections.size(), 1U);
  ASSERT_EQ(connections.take_hangups().size(), 1U) << "its waits are to be cancelled";
  session.waits = 0;
  session.hangup_pending = false;
  connections.erase_closed_sessions();
  EXPECT_EQ(connections.size(), 0U);
}

TEST_F(ConnectionListsTest, OutputThatIsNotDurableYetStaysDirty) {
  Session& session = add(1);
  session.reply().ok();
  connections.seal(session, BatchId{7});
  const auto flush = [&](BatchId durable) {
    connections.flush_dirty([&](Session& dirty) { connections.send(dirty, durable); });
  };
  flush(BatchId{6});
  EXPECT_EQ(network.lines[1].received, "");
  flush(BatchId{7});
  EXPECT_EQ(network.lines[1].received, "+OK\r\n");
  EXPECT_FALSE(session.in_dirty);
}

TEST_F(ConnectionListsTest, AStalledSessionIsSentNothingUntilItIsWritable) {
  Session& session = add(1);
  network.lines[1].window = 2;
  session.reply().ok();
  connections.seal(session, BatchId{});
  connections.send(session, BatchId{});
  EXPECT_EQ(network.lines[1].received, "+O");
  network.lines[1].window = SIZE_MAX;
  connections.send(session, BatchId{});
  EXPECT_EQ(network.lines[1].received, "+O");
  connections.writable(session.id());
  connections.send(session, BatchId{});
  EXPECT_EQ(network.lines[1].received, "+OK\r\n");
}

TEST_F(ConnectionListsTest, CountsBlockedSessionsAndThoseOfHttp) {
  Session& http = add(1, "http:10.0.0.7:4711");
  connections.block(http);
  EXPECT_EQ(connections.blocked(), 1U);
  EXPECT_EQ(connections.in_process(), 1U);
  EXPECT_EQ(http.address(), "10.0.0.7:4711");
  connections.unblock(http);
  connections.close(http);
  EXPECT_EQ(connections.blocked(), 0U);
  EXPECT_EQ(connections.in_process(), 0U);
}

}  // namespace
}  // namespace pawl::server
