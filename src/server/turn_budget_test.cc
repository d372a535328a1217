// A turn is bounded by work, not by commands (G10).
#include <algorithm>

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class TurnBudgetTest : public EngineTest {
 protected:
  // Shared holders of one lock, so that looking at it is dear.
  void share(const std::string& lock, int holders) {
    Client client = connect();
    for (int i = 0; i < holders; ++i) client.ask("ACQUIRE " + lock + " TTL 600000 SHARED");
  }
  // Connections that ask the same question again and again.
  std::vector<Client> flood(int connections, const std::string& question, int times) {
    std::string questions;
    for (int i = 0; i < times; ++i) questions += question + "\r\n";
    std::vector<Client> clients;
    for (int i = 0; i < connections; ++i) clients.push_back(connect().send(questions));
    return clients;
  }
  // The most that one command of these tests costs.
  static constexpr std::uint64_t kDearest = 1'000'000;
};

// H3: 3,000 connections with six of these each made a turn of 8 s.
TEST_F(TurnBudgetTest, ARenewalAmongThreeThousandDearQuestionsIsAnsweredInTheSameTurn) {
  share("busy", 100);
  Client holder = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE held TTL 2000"));
  std::vector<Client> clients = flood(3000, "INSPECT busy HOLDERS 1000", 6);
  for (int turns = 0; turns < 5; ++turns) {
    holder.say("RENEW " + lease);
    turn();
    EXPECT_EQ(holder.take(), ":2000\r\n") << "in turn " << turns;
    EXPECT_GE(engine().budget().spent(), limits::kWorkPerTurn);
    EXPECT_LE(engine().budget().spent(), limits::kWorkPerTurn + kDearest);
    EXPECT_EQ(engine().patience(), Nanos(0)) << "the rest is to be served at once";
  }
  for (Client& client : clients) client.take();
}

TEST_F(TurnBudgetTest, EachConnectionGetsItsShareOfDearAnswersInTurn) {
  share("busy", 100);
  std::vector<Client> clients = flood(1000, "INSPECT busy HOLDERS 1000", 6);
  std::size_t answered = 0;
  for (int turns = 0; answered < clients.size(); ++turns) {
    ASSERT_LT(turns, 20) << "some connections get more than their share";
    turn();
    answered = 0;
    for (Client& client : clients) answered += client.line().received.empty() ? 0 : 1;
  }
  while (engine().patience() == Nanos(0)) turn();
  EXPECT_EQ(engine().telemetry().commands_served, 100U + 6U * 1000U);
}

// A renewal cannot overtake what its own connection sent before it, but its connection need not wait
// for those that ask for far more.
TEST_F(TurnBudgetTest, AConnectionThatAskedLittleComesBeforeThoseThatAskedMuch) {
  share("busy", 100);
  Client holder = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE held TTL 2000"));
  std::vector<Client> clients = flood(1000, "INSPECT busy HOLDERS 1000", 20);
  const auto is_answered = [](Client& client) { return !client.line().received.empty(); };
  for (int turns = 0; !std::all_of(clients.begin(), clients.end(), is_answered); ++turns) {
    ASSERT_LT(turns, 40);
    turn();
  }
  holder.send("INSPECT held\r\nRENEW " + lease + "\r\n");
  turn();
  const std::string answers = holder.take();
  EXPECT_TRUE(answers.ends_with(":2000\r\n")) << answers;
  EXPECT_EQ(engine().patience(), Nanos(0));
}

TEST_F(TurnBudgetTest, RenewalsHaveABudgetOfTheirOwnWhichIsBoundedToo) {
  std::string unknown = "MRENEW";
  for (int i = 0; i < 1000; ++i) unknown += " 00000000000000000000000000000000";
  std::vector<Client> clients = flood(1000, unknown, 2);
  turn();
  EXPECT_LE(engine().budget().spent(), 2 * limits::kWorkPerTurn + kDearest);
  EXPECT_EQ(engine().patience(), Nanos(0));
  while (engine().patience() == Nanos(0)) turn();
  EXPECT_EQ(engine().telemetry().commands_served, 2000U);
}

TEST_F(TurnBudgetTest, HalfACommandBehindASpentBudgetWaitsForItsRest) {
  share("busy", 100);
  std::vector<Client> clients = flood(3000, "INSPECT busy HOLDERS 1000", 1);
  Client client = connect();
  client.send("PI");
  turn();
  client.send("NG\r\n");
  turn();
  EXPECT_EQ(client.take(), "+PONG\r\n");
}

TEST_F(TurnBudgetTest, AHangUpBehindASpentBudgetIsServedAndClosed) {
  share("busy", 100);
  std::vector<Client> clients = flood(3000, "INSPECT busy HOLDERS 1000", 1);
  Client client = connect();
  client.send("INSPECT free\r\n");
  client.hang_up();
  turn();
  while (engine().patience() == Nanos(0)) turn();
  EXPECT_NE(client.take().find("free"), std::string::npos);
  EXPECT_TRUE(client.closed());
}

// pawld ended with a failed assertion: the push had marked the connection as ready a second time.
TEST_F(TurnBudgetTest, AReleaseThatGrantsItsOwnAsyncWaitBehindASpentBudgetIsServed) {
  share("busy", 100);
  Client client = connect3();
  const std::string lease = lease_in(client.ask("ACQUIRE mine TTL 60000"));
  client.ask("ACQUIRE mine TTL 60000 WAIT 60000 ASYNC REQUEST abcdefghijklmnopqrstuv");
  std::vector<Client> clients = flood(3000, "INSPECT busy HOLDERS 1000", 1);
  turn();
  client.send("RELEASE " + lease + "\r\nINSPECT mine\r\n");
  turn();
  while (engine().patience() == Nanos(0)) turn();
  const std::string answers = client.take();
  EXPECT_NE(answers.find("granted"), std::string::npos) << answers;
  EXPECT_NE(answers.find("holder_count"), std::string::npos) << answers;
}

TEST_F(TurnBudgetTest, InspectShowsSixteenHoldersAndCountsTheRest) {
  share("busy", 40);
  Client client = connect();
  const auto shown = [](const std::string& reply) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = reply.find("expires_in_ms", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  const std::string some = client.ask("INSPECT busy");
  EXPECT_EQ(shown(some), 16U);
  EXPECT_NE(some.find("holder_count\r\n:40\r\n"), std::string::npos) << some;
  EXPECT_EQ(shown(client.ask("INSPECT busy HOLDERS 1000")), 40U);
  EXPECT_EQ(shown(client.ask("INSPECT busy HOLDERS 16 AFTER 32")), 8U);
  EXPECT_EQ(client.ask("INSPECT busy HOLDERS 1001").substr(0, 4), "-ERR");
}

}  // namespace
}  // namespace pawl::server
