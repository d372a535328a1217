// Observers alone: who is sent which events, and when.
#include "server/observers.h"

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class ObserversTest : public testing::Test {
 protected:
  void SetUp() override { observers.events().start(Incarnation{7}, 0); }
  Session& add(std::uint64_t id) {
    Session& session = *connections.add(ConnectionId{id}, "peer", Tick{});
    session.protocol = wire::Protocol::kResp3;
    return session;
  }
  void append(std::uint64_t batch, std::string_view lock) {
    core::Output output;
    core::Event event;
    event.token = Token{batch};
    event.lock_size = static_cast<std::uint32_t>(lock.size());
    output.text = lock;
    output.events.push_back(event);
    observers.events().append(BatchId{batch}, output);
  }
  static std::string output(Session& session) {
    const std::string bytes(session.outbox().ready(BatchId{}));
    session.outbox().sent(bytes.size());
    return bytes;
  }

  FakeNetwork network;
  Telemetry telemetry;
  KeptLog log;
  Connections connections{network, {}, telemetry};
  Observers observers{{.events = 4, .bytes = 1024}, {.in_all = 1}, connections, log, telemetry};
};

TEST_F(ObserversTest, ADurableEventIsSentToMatchingPrefixesOnly) {
  Session& session = add(1);
  observers.add(session, "a/", observers.start_at(std::nullopt).position);
  append(1, "a/x");
  append(2, "b/x");
  EXPECT_EQ(output(session), "");
  observers.publish(BatchId{2});
  const std::string sent = output(session);
  EXPECT_NE(sent.find("a/x"), std::string::npos);
  EXPECT_EQ(sent.find("b/x"), std::string::npos);
}

TEST_F(ObserversTest, TheNumberOfObserversIsLimited) {
  Session &first = add(1), &second = add(2);
  EXPECT_FALSE(observers.check_limits(first));
  observers.add(first, "", 0);
  EXPECT_FALSE(observers.check_limits(first)) << "it is one already";
  EXPECT_TRUE(observers.check_limits(second));
  observers.stop(first);
  EXPECT_FALSE(observers.check_limits(second));
}

TEST_F(ObserversTest, RemovingTheLastPrefixEndsTheObserving) {
  Session& session = add(1);
  observers.add(session, "a/", 0);
  EXPECT_FALSE(observers.remove(session, "b/"));
  EXPECT_TRUE(observers.remove(session, "a/"));
  EXPECT_EQ(session.observation, nullptr);
  EXPECT_FALSE(observers.remove(session, "a/"));
}

TEST_F(ObserversTest, AnIdThatIsNoLongerKnownIsReportedAsMissed) {
  for (std::uint64_t batch = 1; batch <= 10; ++batch) append(batch, "a");
  observers.publish(BatchId{10});
  EXPECT_FALSE(observers.start_at(std::nullopt).missed);
  EXPECT_TRUE(observers.start_at(wire::EventId{Incarnation{7}, 1}).missed);
  EXPECT_TRUE(observers.start_at(wire::EventId{Incarnation{8}, 1}).missed);
}

TEST_F(ObserversTest, AnObserverBehindTheRingIsCut) {
  Session& session = add(1);
  observers.add(session, "", observers.start_at(std::nullopt).position);
  for (std::uint64_t batch = 1; batch <= 10; ++batch) append(batch, "a");
  observers.publish(BatchId{10});
  EXPECT_TRUE(session.closing);
  EXPECT_EQ(session.observation, nullptr);
  EXPECT_EQ(telemetry.connections_cut, 1U);
  EXPECT_NE(output(session).find("-BUSY events"), std::string::npos);
  EXPECT_EQ(log.lines.size(), 1U);
}

}  // namespace
}  // namespace pawl::server
