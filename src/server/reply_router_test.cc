// ReplyRouter alone, on a real core: every input is answered once, to the right connection.
#include "server/reply_router.h"

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class ReplyRouterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(core.loaded(Token{0}, now)); }
  Session& add(std::uint64_t id) {
    Session& session = *connections.add(ConnectionId{id}, "peer", Tick{});
    session.protocol = wire::Protocol::kResp3;
    return session;
  }
  core::Acquire acquire(std::string_view lock, Millis wait = Millis(0), bool async = false) {
    core::Acquire input{kDirect, {}, random.lease_id()};
    input.spec.locks.push_back(lock);
    input.spec.terms.ttl = Millis(10'000);
    input.spec.wait = wait;
    input.spec.async = async;
    return input;
  }
  LeaseId grant(std::string_view lock) {
    const core::Reply reply = router.ask(acquire(lock), now);
    return std::get<core::Granted>(reply.outcome).lease;
  }
  static std::string output(Session& session) {
    const std::string bytes(session.outbox().ready(BatchId{UINT64_MAX}));
    session.outbox().sent(bytes.size());
    return bytes;
  }

  FakeNetwork network;
  Telemetry telemetry;
  TurnStats stats{telemetry};
  Connections connections{network, {}, telemetry};
  core::Core core;
  SeededRandom random{1};
  Now now;
  ReplyRouter router{core, connections, stats};
};

TEST_F(ReplyRouterTest, AnInputThatNeverWaitsIsAnsweredAtOnce) {
  const LeaseId lease = grant("a");
  EXPECT_TRUE(std::holds_alternative<core::NotObtained>(router.ask(acquire("a"), now).outcome));
  EXPECT_TRUE(
      std::get<core::Released>(router.ask(core::Release{kDirect, lease}, now).outcome).was_live);
}

TEST_F(ReplyRouterTest, AReleaseEndsTheWaitOfAnotherConnection) {
  const LeaseId lease = grant("a");
  Session& waiter = add(1);
  core::Acquire input = acquire("a", Millis(1000));
  EXPECT_TRUE(router.wait(waiter, input, "", now));
  EXPECT_TRUE(waiter.blocked);
  EXPECT_EQ(output(waiter), "");
  router.ask(core::Release{kDirect, lease}, now);
  EXPECT_FALSE(waiter.blocked);
  EXPECT_EQ(output(waiter).substr(0, 2), "%6");
}

TEST_F(ReplyRouterTest, AnAsyncWaitIsQueuedFirstAndThenPushed) {
  const LeaseId lease = grant("a");
  Session& waiter = add(1);
  core::Acquire input = acquire("a", Millis(1000), true);
  input.spec.request = "request";
  EXPECT_TRUE(router.wait(waiter, input, "request", now));
  EXPECT_FALSE(waiter.blocked);
  EXPECT_NE(output(waiter).find("queued"), std::string::npos);
  EXPECT_TRUE(router.is_waiting_for(waiter, "request"));
  router.ask(core::Release{kDirect, lease}, now);
  EXPECT_EQ(output(waiter).front(), '>');
  EXPECT_EQ(waiter.async_waits, 0U);
  EXPECT_FALSE(router.is_waiting_for(waiter, "request"));
}

TEST_F(ReplyRouterTest, CancelledWaitsAreNeverGranted) {
  const LeaseId lease = grant("a");
  Session &first = add(1), &second = add(2), &third = add(3);
  for (Session* session : {&first, &second, &third}) {
    core::Acquire input = acquire("a", Millis(1000));
    router.wait(*session, input, "", now);
  }
  const std::array<Session*, 2> gone{&first, &second};
  router.cancel_waits(gone, now);
  router.ask(core::Release{kDirect, lease}, now);
  EXPECT_EQ(output(first) + output(second), "");
  EXPECT_EQ(output(third).substr(0, 2), "%6");
  EXPECT_EQ(connections.blocked(), 0U);
}

TEST_F(ReplyRouterTest, AWaitThatIsRefusedAtOnceIsReportedAsAnError) {
  Session& session = add(1);
  core::Acquire first = acquire("a");
  first.spec.request = "abcdefghijklmnopqrstuv";
  router.ask(first, now);
  core::Acquire conflict = acquire("b", Millis(1000));
  conflict.spec.request = "abcdefghijklmnopqrstuv";
  EXPECT_FALSE(router.wait(session, conflict, conflict.spec.request, now));
  EXPECT_EQ(output(session).substr(0, 9), "-CONFLICT");
  EXPECT_FALSE(session.blocked);
}

}  // namespace
}  // namespace pawl::server
