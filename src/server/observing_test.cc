// OBSERVE and UNOBSERVE: order, durability, FROM, and observers that read too slowly.
#include "server/testlib/engine_fixture.h"
#include "wire/events.h"
#include "wire/reply_decoder.h"

namespace pawl::server {
namespace {

class ObservingTest : public EngineTest {
 protected:
  // Every frame that arrived since the last look.
  static std::vector<wire::Value> frames(Client& client) {
    std::vector<wire::Value> all;
    const std::string bytes = client.take();
    for (std::string_view rest = bytes; !rest.empty();) {
      auto decoded = wire::ReplyDecoder().decode(rest);
      EXPECT_EQ(decoded.status, wire::DecodeStatus::kComplete) << rest;
      if (decoded.status != wire::DecodeStatus::kComplete) break;
      rest.remove_prefix(decoded.consumed);
      all.push_back(std::move(decoded.value));
    }
    return all;
  }
  // The events among them; other frames are left out.
  static std::vector<wire::EventPush> events(Client& client) {
    std::vector<wire::EventPush> all;
    for (const wire::Value& frame : frames(client)) {
      if (auto event = wire::read_event(frame)) all.push_back(std::move(*event));
    }
    return all;
  }
  // "granted a 1, released a 1"
  static std::string told(const std::vector<wire::EventPush>& events) {
    std::string text;
    for (const wire::EventPush& event : events) {
      if (!text.empty()) text += ", ";
      text += to_text(event.kind);
      if (!event.lock.empty()) text += " " + event.lock;
      if (event.token.value != 0) text += " " + std::to_string(event.token.value);
    }
    return text;
  }
  static std::string told(Client& client) { return told(events(client)); }
  // The id that OBSERVE answered: a bulk string in front of what follows.
  static std::string id_in(const std::string& reply) {
    const auto begin = reply.find("\r\n") + 2;
    return reply.substr(begin, reply.find("\r\n", begin) - begin);
  }
  // Acquires and releases at once.
  std::string cycle(Client& client, const std::string& lock) {
    const std::string lease = lease_in(client.ask("ACQUIRE " + lock + " TTL 60000"));
    EXPECT_EQ(client.ask("RELEASE " + lease), ":1\r\n");
    return lease;
  }
};

TEST_F(ObservingTest, EveryChangeIsAnEventInOrder) {
  Client observer = connect3();
  Client client = connect();
  observer.ask("OBSERVE a");
  const std::string lease = lease_in(client.ask("ACQUIRE a/1 AND b AND a/2 TTL 1000 OWNER me"));
  client.ask("RELEASE " + lease);
  client.ask("ACQUIRE a/3 TTL 1000 SHARED");
  live(1100ms);
  client.ask("ACQUIRE a/4 TTL 1000");
  client.ask("BREAK a/4 TOKEN 3 REASON gone");
  live(1100ms);
  client.ask("ACQUIRE a/5 TTL 1000");
  client.ask("BREAK a/5 TOKEN 4 NOW REASON gone");
  client.ask("RAISE 100 REASON restored");
  const auto all = events(observer);
  EXPECT_EQ(
      told(all),
      "granted a/1 1, granted a/2 1, released a/1 1, released a/2 1, granted a/3 2, expired a/3 2, "
      "granted a/4 3, "
      "breaking a/4 3, broken a/4 3, granted a/5 4, broken a/5 4, raised 100");
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].id, all[i].id);
  EXPECT_EQ(all[0].owner, "me");
  EXPECT_EQ(all[0].mode, "exclusive");
  EXPECT_GT(all[0].at.value, 1'700'000'000'000U - 1);
  EXPECT_EQ(all[2].how, "released");
  EXPECT_EQ(all[4].mode, "shared");
  EXPECT_EQ(all[5].how, "expired");
  EXPECT_EQ(all[7].reason, "gone");
  EXPECT_EQ(all[10].how, "broken");
  EXPECT_EQ(all[11].reason, "restored");
}

// G2, as for replies.
TEST_F(ObservingTest, AnEventLeavesOnlyWhenItIsDurable) {
  Client observer = connect3();
  Client client = connect();
  observer.ask("OBSERVE a");
  store.hold();
  client.say("ACQUIRE a/1 TTL 1000");
  turn();
  client.say("ACQUIRE a/2 TTL 1000");
  turn();
  Client late = connect3();
  late.ask("OBSERVE a");
  EXPECT_EQ(observer.take(), "");
  ASSERT_TRUE(store.release_next());
  turn();
  EXPECT_EQ(told(observer), "granted a/1 1");
  EXPECT_EQ(told(late), "granted a/1 1") << "it was not durable when the observing began";
  store.release();
  turn();
  EXPECT_EQ(told(observer), "granted a/2 2");
  EXPECT_EQ(told(late), "granted a/2 2");
}

// Hard case 21.
TEST_F(ObservingTest, ObserveThenInspectLeavesNoGap) {
  Client client = connect();
  store.hold();
  Client observer = connect3();
  client.say("ACQUIRE a TTL 1000");
  observer.say("OBSERVE a").say("INSPECT a");
  turn();
  client.say("ACQUIRE b TTL 1000");
  turn();
  store.release();
  turn();
  const auto all = frames(observer);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].find("state")->as_text(), "held");
  EXPECT_EQ(wire::read_event(all[2])->token, Token{1})
      << "INSPECT showed it already; twice is no gap";
}

TEST_F(ObservingTest, FromResumesAtEveryPositionWithoutGapOrRepetition) {
  Client first = connect3();
  Client client = connect();
  std::vector<std::string> ids{id_in(first.ask("OBSERVE ''"))};
  for (int i = 0; i < 5; ++i) cycle(client, "a" + std::to_string(i));
  std::vector<wire::EventPush> all = events(first);
  ASSERT_EQ(all.size(), 10U);
  for (const wire::EventPush& event : all) ids.push_back(to_text(event.id));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Client again = connect3();
    again.say("OBSERVE a FROM " + ids[i]);
    turn();
    EXPECT_EQ(events(again), std::vector(all.begin() + static_cast<std::ptrdiff_t>(i), all.end()))
        << i;
    cycle(client, "a");
    const auto live = events(first);
    EXPECT_EQ(live.size(), 2U);
    EXPECT_EQ(events(again), live) << "and then what is new";
    all.insert(all.end(), live.begin(), live.end());
  }
}

// The reader asks from within the very turn in which the change is made.
TEST_F(ObservingTest, FromWhileABatchIsUnderWaySendsItOnce) {
  Client client = connect();
  Client observer = connect3();
  const std::string origin = id_in(observer.ask("OBSERVE zzz"));
  client.ask("ACQUIRE a1 TTL 1000");
  store.hold();
  client.say("ACQUIRE a2 TTL 1000");
  observer.say("OBSERVE a FROM " + origin);
  turn();
  client.say("ACQUIRE a3 TTL 1000");
  turn();
  store.release();
  turn();
  EXPECT_EQ(told(observer), "granted a1 1, granted a2 2, granted a3 3");
}

TEST_F(ObservingTest, AnUnknownOrOldOrForeignFromBeginsWithAReset) {
  settings.events = {.events = 4, .bytes = 1024};
  restart();
  Client client = connect();
  Client observer = connect3();
  const std::string origin = id_in(observer.ask("OBSERVE a"));
  cycle(client, "a");
  const std::string seen = to_text(events(observer).at(0).id);
  for (int i = 0; i < 3; ++i) cycle(client, "b");
  for (const std::string& from : {origin, seen, std::string("0000000000000008-1"),
                                  std::string("0000000000000007-999999999")}) {
    Client again = connect3();
    again.say("OBSERVE a FROM " + from);
    turn();
    const auto all = events(again);
    EXPECT_EQ(told(all), "reset") << from;
    Client once_more = connect3();
    once_more.say("OBSERVE b FROM " + to_text(all.at(0).id));
    turn();
    EXPECT_EQ(told(once_more), "") << "a reset's id can be resumed from";
  }
  EXPECT_EQ(connect3().ask("OBSERVE a FROM nonsense").find("-ERR FROM must be an event id"), 0U);
}

TEST_F(ObservingTest, AfterARestartIdsGoOnGrowingAndAnOldOneGivesAReset) {
  Client client = connect();
  Client observer = connect3();
  observer.ask("OBSERVE a");
  cycle(client, "a");
  const auto before = events(observer);
  restart();
  Client later = connect3();
  Client other = connect();
  later.say("OBSERVE a FROM " + to_text(before.back().id));
  turn();
  cycle(other, "a");
  const auto after = events(later);
  EXPECT_EQ(told(after), "reset, granted a 2, released a 2");
  EXPECT_LT(before.back().id, after.front().id);
  EXPECT_LT(after.front().id, after[1].id);
}

TEST_F(ObservingTest, OverlappingPrefixesSendAnEventOnce) {
  Client client = connect();
  Client observer = connect3();
  observer.ask("OBSERVE a");
  observer.ask("OBSERVE a/b");
  observer.ask("OBSERVE c");
  observer.ask("OBSERVE c");
  cycle(client, "a/b/1");
  EXPECT_EQ(told(observer), "granted a/b/1 1, released a/b/1 1");
  EXPECT_EQ(observer.ask("UNOBSERVE a"), ":1\r\n");
  EXPECT_EQ(observer.ask("UNOBSERVE a"), ":0\r\n");
  cycle(client, "a/b");
  cycle(client, "a/c");
  cycle(client, "c");
  EXPECT_EQ(told(observer), "granted a/b 2, released a/b 2, granted c 4, released c 4");
}

TEST_F(ObservingTest, PrefixesAndObserversAreLimitedByName) {
  settings.observers_max = 2;
  restart();
  Client observer = connect3();
  for (std::size_t i = 0; i < limits::kPrefixesPerObserver; ++i) {
    EXPECT_EQ(observer.ask("OBSERVE p" + std::to_string(i)).front(), '$');
  }
  EXPECT_EQ(observer.ask("OBSERVE q"),
            "-BUSY prefixes: the limit of 16 per connection is reached\r\n");
  EXPECT_EQ(observer.ask("OBSERVE p0").front(), '$');
  Client second = connect();
  EXPECT_EQ(second.ask("OBSERVE q").front(), '$');
  Client third = connect();
  EXPECT_EQ(
      third.ask("OBSERVE q"),
      "-BUSY observers: the limit of 2 connections that observe in all is reached; close one, "
      "or raise limits.observers of pawld\r\n");
  second.ask("UNOBSERVE q");
  EXPECT_EQ(third.ask("OBSERVE q").front(), '$');
  third.hang_up();
  turn();
  EXPECT_EQ(connect().ask("OBSERVE q").front(), '$');
}

TEST_F(ObservingTest, InResp2AnObservingConnectionTakesFourCommandsOnly) {
  Client client = connect();
  Client observer = connect();
  observer.ask("OBSERVE a");
  for (const char* refused : {"INSPECT a", "ACQUIRE a TTL 1000", "HELLO 3", "RESET", "STATUS"}) {
    EXPECT_NE(observer.ask(refused).find("only OBSERVE, UNOBSERVE, PING and QUIT"),
              std::string::npos)
        << refused;
  }
  EXPECT_EQ(observer.ask("PING"), "+PONG\r\n");
  observer.ask("OBSERVE b");
  cycle(client, "a");
  const auto all = frames(observer);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kind, wire::Value::Kind::kArray);
  EXPECT_EQ(wire::read_event(all[0])->lock, "a");
  observer.ask("UNOBSERVE a");
  observer.ask("UNOBSERVE b");
  EXPECT_NE(observer.ask("INSPECT a").find("free"), std::string::npos)
      << "it observes nothing any more";
  observer.ask("OBSERVE a");
  EXPECT_EQ(observer.ask("QUIT"), "+OK\r\n");
  EXPECT_TRUE(observer.closed());
  cycle(client, "a");
}

TEST_F(ObservingTest, InResp3TheConnectionStaysFreeAndResetEndsTheObserving) {
  Client observer = connect3();
  observer.ask("OBSERVE a");
  EXPECT_EQ(observer.ask("HELLO 2").find("-ERR this connection observes"), 0U);
  EXPECT_FALSE(lease_in(observer.ask("ACQUIRE a TTL 1000")).empty());
  EXPECT_EQ(observer.ask("RESET"), "+RESET\r\n");
  Client client = connect();
  client.ask("ACQUIRE a2 TTL 1000");
  EXPECT_EQ(observer.take(), "");
}

TEST_F(ObservingTest, OnAConnectionKeptForRenewalsItIsRefused) {
  settings.connections_max = 1;
  restart();
  connect();
  EXPECT_EQ(connect().ask("OBSERVE a").find("-BUSY connections"), 0U);
}

TEST_F(ObservingTest, AHangUpForgetsTheObserver) {
  Client client = connect();
  Client observer = connect3();
  observer.ask("OBSERVE a");
  observer.hang_up();
  turn();
  EXPECT_TRUE(observer.closed());
  cycle(client, "a");
  EXPECT_EQ(engine().connections().size(), 1U);
}

// Hard case 25.
TEST_F(ObservingTest, ASlowObserverIsSentPiecesAndDelaysNoOther) {
  Client client = connect();
  Client slow = connect3();
  Client quick = connect3();
  slow.ask("OBSERVE a");
  quick.ask("OBSERVE a");
  slow.line().window = 1000;
  for (int i = 0; i < 1000; ++i) {
    cycle(client, "a");
    EXPECT_EQ(events(quick).size(), 2U);
  }
  EXPECT_FALSE(slow.closed());
  slow.line().window = SIZE_MAX;
  engine().writable(slow.id());
  turn();
  while (engine().patience() == Nanos(0)) turn();
  const auto all = events(slow);
  ASSERT_EQ(all.size(), 2000U);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].id, all[i].id);
}

// Hard case 25.
TEST_F(ObservingTest, AnObserverThatFallsOutOfTheRingIsCutWithAReason) {
  settings.events = {.events = 256, .bytes = 64 * 1024};
  restart();
  Client client = connect();
  Client slow = connect3();
  slow.ask("OBSERVE a");
  slow.ask("ACQUIRE held TTL 600000");
  client.ask("ACQUIRE wanted TTL 600000");
  slow.ask("ACQUIRE wanted TTL 1000 WAIT 600000 ASYNC REQUEST 0123456789012345678901");
  slow.line().window = 1000;
  for (int i = 0; i < 1000; ++i) cycle(client, "a");
  EXPECT_FALSE(slow.closed());
  EXPECT_EQ(engine().telemetry().connections_cut, 1U);
  EXPECT_EQ(engine().totals().waiters, 0U) << "its waits are over";
  slow.line().window = SIZE_MAX;
  engine().writable(slow.id());
  turn();
  EXPECT_TRUE(slow.closed());
  const auto all = frames(slow);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().text.find("BUSY events:"), 0U) << all.back().text;
}

TEST_F(ObservingTest, ALongReplayReachesAReaderThatReads) {
  Client client = connect();
  Client observer = connect3();
  const std::string origin = id_in(observer.ask("OBSERVE zzz"));
  constexpr int kCycles = 3000;
  for (int i = 0; i < kCycles; ++i) cycle(client, "a");
  observer.say("OBSERVE a FROM " + origin);
  turn();
  EXPECT_LT(observer.line().received.size(), 2 * Session::kOutputPause) << "a piece per turn";
  while (engine().patience() == Nanos(0)) turn();
  EXPECT_EQ(events(observer).size(), std::size_t{2 * kCycles});
}

}  // namespace
}  // namespace pawl::server
