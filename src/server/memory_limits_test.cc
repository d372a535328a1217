// Limits on what clients may use, in all and for each user: their names in -BUSY, and their use in
// STATUS.
#include "server/testlib/access_fixture.h"

namespace pawl::server {
namespace {

class MemoryLimitsTest : public AccessTest {
 protected:
  void limit_to(const EngineSettings& wanted) {
    settings = wanted;
    restart();
    engine().set_users(Users(everyone()));
  }
  // What a client that never reads is sent from now on.
  static Client& stall(Client& client) {
    client.line().window = 0;
    return client;
  }
  void fill(Client& client, int answers) {
    for (int i = 0; i < answers; ++i) client.say("HELP");
    turn();
  }
};

TEST_F(MemoryLimitsTest, ABusyUserIsToldWhichLimitItsUseAndWhatToDo) {
  EngineSettings tight;
  tight.core.per_user.leases = 1;
  limit_to(tight);
  Client worker = connect_as("worker");
  const std::string lease = lease_in(worker.ask("ACQUIRE a TTL 60000"));
  EXPECT_EQ(worker.ask("ACQUIRE b TTL 60000"),
            "-BUSY leases: the limit of 1 for one user is reached, 1 are in use; waiting requests "
            "count too; release some, or ask again when some have ended, or raise "
            "limits.leases_per_user of pawld\r\n");
  EXPECT_FALSE(lease_in(connect_as("boss").ask("ACQUIRE b TTL 60000")).empty());
  EXPECT_EQ(worker.ask("RENEW " + lease), ":60000\r\n");
  EXPECT_EQ(worker.ask("RELEASE " + lease), ":1\r\n");
}

TEST_F(MemoryLimitsTest, AUserIsTheSameOverConnectionsAndReloads) {
  EngineSettings tight;
  tight.core.per_user.leases = 1;
  limit_to(tight);
  EXPECT_FALSE(lease_in(connect_as("worker").ask("ACQUIRE a TTL 60000")).empty());
  engine().set_users(Users(everyone()));
  EXPECT_EQ(connect_as("worker").ask("ACQUIRE b TTL 60000").substr(0, 13), "-BUSY leases:");
}

TEST_F(MemoryLimitsTest, ObserversAreLimitedForEachUser) {
  EngineSettings tight;
  tight.observers_per_user = 1;
  limit_to(tight);
  Client first = connect3_as("looker");
  EXPECT_EQ(first.ask("OBSERVE a").front(), '$');
  EXPECT_EQ(connect3_as("looker").ask("OBSERVE a"),
            "-BUSY observers: the limit of 1 connections that observe for one user is reached; "
            "close one, or raise limits.observers_per_user of pawld\r\n");
  EXPECT_EQ(connect3_as("boss").ask("OBSERVE a").front(), '$');
}

// H4: 3,000 connections that did not read took 1 GB.
TEST_F(MemoryLimitsTest, UnreadOutputOfAllIsBoundedAndItsGreatestUserIsCut) {
  EngineSettings tight;
  tight.output_total_max = 100'000;
  limit_to(tight);
  Client modest = connect_as("worker");
  fill(stall(modest), 2);
  std::vector<Client> greedy;
  for (int i = 0; i < 100; ++i) {
    greedy.push_back(connect_as("looker"));
    fill(stall(greedy.back()), 4);
    EXPECT_LE(engine().connections().output_total(), 100'000U);
  }
  EXPECT_FALSE(modest.closed()) << "a user with little is not touched";
  std::size_t cut = 0;
  for (Client& client : greedy) cut += client.closed() ? 1 : 0;
  EXPECT_GT(cut, 0U);
  EXPECT_EQ(engine().telemetry().connections_cut, cut);
}

TEST_F(MemoryLimitsTest, OutputThatWasReadNoLongerCounts) {
  Client client = connect_as("worker");
  fill(stall(client), 4);
  EXPECT_GT(engine().connections().output_total(), 0U);
  client.line().window = SIZE_MAX;
  engine().writable(client.id());
  turn();
  EXPECT_EQ(engine().connections().output_total(), 0U);
  fill(stall(client), 4);
  client.hang_up();
  turn();
  client.line().window = SIZE_MAX;
  engine().writable(client.id());
  turn();
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(engine().connections().output_total(), 0U);
}

TEST_F(MemoryLimitsTest, StatusShowsUseAgainstLimit) {
  EngineSettings some;
  some.core.in_all.leases = 100;
  some.core.per_user.leases = 50;
  limit_to(some);
  Client worker = connect_as("worker");
  worker.ask("ACQUIRE a TTL 60000");
  worker.ask("ACQUIRE b TTL 60000");
  const std::string status = worker.ask("STATUS");
  EXPECT_NE(status.find("leases\r\n*8\r\n$3\r\nuse\r\n:2\r\n$5\r\nlimit\r\n:100\r\n"
                        "$13\r\ngreatest_user\r\n:2\r\n$8\r\nper_user\r\n:50\r\n"),
            std::string::npos)
      << status;
  EXPECT_NE(status.find("output_bytes"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
