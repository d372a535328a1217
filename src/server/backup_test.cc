// BACKUP: the one who asks waits, and nobody else.
#include <gmock/gmock.h>

#include <optional>

#include "server/testlib/engine_fixture.h"
#include "store/journal/journal.h"
#include "store/testlib/simulated_disk.h"

namespace pawl::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// An engine on a journal whose backups advance when the test says so.
class BackupTest : public EngineTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk.make_directory("/backups"));
    store::journal::Settings journal_settings;
    journal_settings.segment_bytes = 1 << 20;
    journal_settings.space_reserve = 0;
    auto opened = store::journal::Journal::open(disk, "/data", journal_settings, random);
    ASSERT_TRUE(opened);
    journal = std::move(*opened);
    on_journal = std::make_unique<Engine>(
        settings,
        EngineParts{*journal, clock, random, network, log, [this](const Error&) { ++fatal; }});
    ASSERT_TRUE(on_journal->load());
  }
  std::uint64_t connects() {
    const std::uint64_t id = ++last;
    network.lines[id];
    on_journal->connected(ConnectionId{id}, "client:" + std::to_string(id));
    return id;
  }
  void say(std::uint64_t id, const std::string& command) {
    on_journal->received(ConnectionId{id}, command + "\r\n");
    on_journal->run_turn();
  }
  std::string received(std::uint64_t id) { return std::exchange(network.lines[id].received, {}); }
  std::string ask(std::uint64_t id, const std::string& command) {
    say(id, command);
    return received(id);
  }
  void finish_backup() {
    while (journal->backup_step()) {
    }
    on_journal->run_turn();
  }

  store::SimulatedDisk disk;
  std::unique_ptr<store::journal::Journal> journal;
  std::unique_ptr<Engine> on_journal;
  std::uint64_t last = 100;
};

TEST_F(BackupTest, ABackupBlocksOnlyItsConnection) {
  const auto asker = connects();
  const auto other = connects();
  ask(other, "ACQUIRE before TTL 60000");
  say(asker, "BACKUP /backups/one\r\nPING");
  EXPECT_EQ(received(asker), "");
  EXPECT_GT(on_journal->patience(), Nanos(20ms)) << "its end wakes the loop, and is not polled";
  EXPECT_THAT(ask(other, "ACQUIRE meanwhile TTL 60000"), HasSubstr("token"));
  EXPECT_THAT(ask(other, "BACKUP /backups/two"), StartsWith("-BUSY backup: one is under way"));
  finish_backup();
  const std::string reply = received(asker);
  EXPECT_THAT(reply, StartsWith("*12\r\n$3\r\ndir\r\n$12\r\n/backups/one\r\n"));
  EXPECT_THAT(reply, HasSubstr("last_token\r\n:1\r\n"));
  EXPECT_THAT(reply, HasSubstr("sequence\r\n:1\r\n"));
  EXPECT_THAT(reply, HasSubstr("+PONG\r\n")) << "what was sent behind it is served";
  EXPECT_GT(on_journal->patience(), Nanos(20ms));
}

TEST_F(BackupTest, ADirectoryThatCannotBeUsedIsANamedError) {
  const auto asker = connects();
  EXPECT_THAT(ask(asker, "BACKUP one"), StartsWith("-ERR dir must be absolute"));
  EXPECT_THAT(ask(asker, "BACKUP"), StartsWith("-ERR"));
  EXPECT_THAT(ask(asker, "BACKUP /" + std::string(1024, 'x')), StartsWith("-TOOLONG"));
  ASSERT_TRUE(disk.make_directory("/backups/taken"));
  say(asker, "BACKUP /backups/taken");
  finish_backup();
  EXPECT_THAT(received(asker),
              StartsWith("-ERR backup: nothing was kept: /backups/taken: exists already"));
  disk.set_capacity(disk.used());
  say(asker, "BACKUP /backups/full");
  finish_backup();
  EXPECT_THAT(received(asker), StartsWith("-FULL backup: nothing was kept: "));
}

TEST_F(BackupTest, TheTimeOfTheLastGoodOneIsKeptAndAFailureDoesNotMoveIt) {
  const auto asker = connects();
  EXPECT_EQ(on_journal->telemetry().last_backup, UnixMs{0});
  const UnixMs asked = clock.reading.wall;
  say(asker, "BACKUP /backups/one");
  finish_backup();
  EXPECT_EQ(on_journal->telemetry().last_backup, asked);
  clock.advance(std::chrono::seconds(60));
  say(asker, "BACKUP /backups/one");  // It exists already.
  finish_backup();
  EXPECT_EQ(on_journal->telemetry().last_backup, asked);
}

TEST_F(BackupTest, HoldsWhatWasSentBeforeIt) {
  const auto asker = connects();
  say(asker, "ACQUIRE before TTL 60000\r\nBACKUP /backups/one");
  finish_backup();
  EXPECT_THAT(received(asker), HasSubstr("records\r\n:2\r\n")) << "the lease, and the last token";
}

TEST_F(BackupTest, GoesOnWhenTheAskerHasLeft) {
  const auto asker = connects();
  say(asker, "BACKUP /backups/one");
  on_journal->hangup(ConnectionId{asker});
  on_journal->run_turn();
  EXPECT_FALSE(network.lines[asker].closed) << "it may only have half-closed, and is answered";
  finish_backup();
  EXPECT_THAT(received(asker), HasSubstr("/backups/one"));
  EXPECT_TRUE(network.lines[asker].closed);
  EXPECT_TRUE(*disk.exists("/backups/one"));
  EXPECT_THAT(ask(connects(), "INFO"), HasSubstr("blocked_clients:0"));
}

TEST_F(BackupTest, AStoreInMemoryRefusesABackup) {
  EngineTest::SetUp();
  EXPECT_THAT(connect().ask("BACKUP /backups/one"),
              StartsWith("-ERR backup: nothing was kept: a memory store"));
}

}  // namespace
}  // namespace pawl::server
