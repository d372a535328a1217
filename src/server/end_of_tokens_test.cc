// The end of the token space, with the real engine on the real store.
#include <gmock/gmock.h>

#include "server/testlib/engine_fixture.h"
#include "store/journal/journal.h"
#include "store/testlib/simulated_disk.h"

namespace pawl::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class EndOfTokensTest : public EngineTest {
 protected:
  void SetUp() override { start(); }
  void start() {
    on_journal.reset();
    journal.reset();
    disk.kill_process();
    store::journal::Settings journal_settings;
    journal_settings.segment_bytes = 1 << 20;
    journal_settings.space_reserve = 0;
    auto opened = store::journal::Journal::open(disk, "/data", journal_settings, random);
    ASSERT_TRUE(opened) << opened.error().detail;
    journal = std::move(*opened);
    on_journal = std::make_unique<Engine>(
        settings,
        EngineParts{*journal, clock, random, network, log, [this](const Error&) { ++fatal; }});
    const auto loaded = on_journal->load();
    ASSERT_TRUE(loaded) << loaded.error().detail;
  }
  std::uint64_t connects() {
    const std::uint64_t id = ++last;
    network.lines[id];
    on_journal->connected(ConnectionId{id}, "client:" + std::to_string(id));
    return id;
  }
  std::string take(std::uint64_t id) { return std::exchange(network.lines[id].received, {}); }
  std::string ask(std::uint64_t id, const std::string& command) {
    on_journal->received(ConnectionId{id}, command + "\r\n");
    on_journal->run_turn();
    return take(id);
  }
  // Moves the counter as far as RAISE allows at once, until it is at `token`.
  void raise_to(std::uint64_t token) {
    const auto admin = connects();
    for (std::uint64_t at = on_journal->totals().last_token.value; at < token;) {
      at = std::min(at + limits::kRaiseMax, token);
      const std::string number = std::to_string(at);
      ASSERT_EQ(ask(admin, "RAISE " + number + " REASON test"), ":" + number + "\r\n");
    }
  }

  store::SimulatedDisk disk;
  std::unique_ptr<store::journal::Journal> journal;
  std::unique_ptr<Engine> on_journal;
  std::uint64_t last = 100;
};

TEST_F(EndOfTokensTest, AQueuedAsyncWaitEndsWhenNoTokenIsLeft) {
  raise_to(limits::kTokenMax - 1);
  const auto holder = connects();
  const auto waiter = connects();
  ask(waiter, "HELLO 3");
  const std::string lease = lease_in(ask(holder, "ACQUIRE a TTL 60000"));
  ASSERT_FALSE(lease.empty());
  ask(waiter, "ACQUIRE a TTL 60000 WAIT 60000 ASYNC REQUEST abcdefghijklmnopqrstuv");
  EXPECT_EQ(ask(holder, "RELEASE " + lease), ":1\r\n");
  EXPECT_THAT(take(waiter), StartsWith(">4\r\n$4\r\npawl\r\n$7\r\ntimeout\r\n"));
  EXPECT_THAT(ask(waiter, "ACQUIRE a TTL 60000"), StartsWith("-"));
  EXPECT_EQ(on_journal->totals().waiters, 0U);
}

TEST_F(EndOfTokensTest, AKilledStoreWithinTheLastBlockStartsAgainAndAgain) {
  raise_to(limits::kTokenMax - 100);
  auto client = connects();
  const std::string lease = lease_in(ask(client, "ACQUIRE a TTL 60000"));
  const std::string other = lease_in(ask(client, "ACQUIRE b TTL 60000"));
  for (const std::string& released : {lease, other}) {
    ASSERT_NO_FATAL_FAILURE(start());
    EXPECT_LE(on_journal->totals().last_token.value, limits::kTokenMax);
    client = connects();
    EXPECT_EQ(ask(client, "RELEASE " + released), ":1\r\n");
  }
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(on_journal->totals().leases, 0U);
}

}  // namespace
}  // namespace pawl::server
