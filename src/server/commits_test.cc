// Commits: durable at once or in a later turn, each measured from its own submission.
#include "server/commits.h"

#include <numeric>

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class CommitsTest : public EngineTest {
 protected:
  const Durations& commit_times() { return engine().telemetry().commit; }
  std::uint64_t commits() {
    return std::accumulate(commit_times().counts.begin(), commit_times().counts.end(),
                           std::uint64_t{0});
  }
};

TEST_F(CommitsTest, ABatchThatIsDurableInALaterTurnIsAnsweredThere) {
  Client client = connect();
  store.hold();
  client.say("ACQUIRE a TTL 1000");
  turn();
  turn();
  EXPECT_EQ(client.take(), "");
  store.release();
  EXPECT_EQ(client.take(), "") << "the store completes it, the next turn notices";
  turn();
  EXPECT_FALSE(lease_in(client.take()).empty());
}

TEST_F(CommitsTest, CommitTimeCountsFromTheSubmissionOfEachBatch) {
  Client client = connect();
  turn();
  store.hold();
  client.say("ACQUIRE a TTL 1000");
  turn();
  advance(30ms);
  client.say("ACQUIRE b TTL 1000");
  turn();
  advance(10ms);
  ASSERT_TRUE(store.release_next());
  turn();
  EXPECT_EQ(commits(), 1U);
  EXPECT_DOUBLE_EQ(commit_times().sum, 40e6);
  advance(5ms);
  ASSERT_TRUE(store.release_next());
  turn();
  EXPECT_EQ(commits(), 2U);
  EXPECT_DOUBLE_EQ(commit_times().sum, 40e6 + 15e6);
}

TEST_F(CommitsTest, ABatchThatFailsInALaterTurnEndsTheServiceWithoutAnAnswer) {
  Client client = connect();
  store.hold();
  client.say("ACQUIRE a TTL 1000");
  turn();
  store.fail(Error{Code::kUnknown, "EIO"});
  store.release();
  client.say("PING");
  turn();
  EXPECT_EQ(fatal, 1);
  EXPECT_EQ(client.take(), "");
}

// --- A store that takes one batch at a time, of limited size -------------------------------------

class OneBatchAtATimeTest : public CommitsTest {
 protected:
  void SetUp() override {
    store.limit_batches({.bytes = 64 * 1024, .operations = SIZE_MAX});
    CommitsTest::SetUp();
  }
  // Completes one batch after the other until nothing is under way.
  void settle() {
    for (int rounds = 0; rounds < 1000; ++rounds) {
      turn();
      if (!store.release_next()) return;
      turn();
    }
    FAIL() << "the store is never done";
  }
};

TEST_F(OneBatchAtATimeTest, WhatArrivesWhileOneIsUnderWayGoesIntoTheNext) {
  std::vector<Client> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(connect());
  store.hold();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i].say("ACQUIRE lock-" + std::to_string(i) + " TTL 1000");
    turn();
  }
  EXPECT_EQ(store.held(), 1U);
  EXPECT_EQ(engine().telemetry().batches, 1U);
  settle();
  EXPECT_EQ(engine().telemetry().batches, 2U) << "the first alone, the other nine together";
  for (Client& client : clients) EXPECT_FALSE(lease_in(client.take()).empty());
}

TEST_F(OneBatchAtATimeTest, AFullBatchHoldsBackWhatAddsToItAndNothingElse) {
  Client holder = connect(), many = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE held TTL 60000"));
  store.hold();
  holder.say("ACQUIRE first TTL 1000");
  turn();
  holder.take();
  const std::string owner(120, 'o');
  for (int i = 0; i < 2000; ++i)
    many.say("ACQUIRE m" + std::to_string(i) + " TTL 60000 OWNER " + owner);
  for (int i = 0; i < 50; ++i) turn();
  EXPECT_EQ(store.held(), 1U);
  EXPECT_LT(engine().totals().leases, 1000U) << "the rest waits for its batch";
  EXPECT_GT(engine().patience(), Nanos(0)) << "there is nothing to do but to wait for the store";
  Client renewing = connect();
  EXPECT_EQ(renewing.ask("RENEW " + lease), ":60000\r\n");
  settle();
  EXPECT_EQ(engine().totals().leases, 2002U);
  EXPECT_LE(store.largest_batch(), 64U * 1024);
}

TEST_F(OneBatchAtATimeTest, EventsOfTurnsThatShareABatchAreAllSent) {
  Client observer = connect3(), client = connect();
  observer.ask("OBSERVE \"\"");
  store.hold();
  for (const char* lock : {"a", "b", "c"}) {
    client.say(std::string("ACQUIRE ") + lock + " TTL 60000");
    turn();
  }
  settle();
  const std::string events = observer.take();
  for (const char* lock : {"\r\na\r\n", "\r\nb\r\n", "\r\nc\r\n"})
    EXPECT_NE(events.find(lock), std::string::npos) << events;
}

}  // namespace
}  // namespace pawl::server
