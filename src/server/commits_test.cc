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

}  // namespace
}  // namespace pawl::server
