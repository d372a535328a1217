// Backups alone, on a store that the test completes.
#include "server/backups.h"

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

class BackupStore final : public store::Store {
 public:
  Result<store::Loaded> load(store::Visitor& /*visitor*/) override { return store::Loaded{}; }
  void submit(const Batch& /*batch*/, BatchId id, store::Sink& sink) override { sink.durable(id); }
  bool has_room() override { return true; }
  Result<void> close() override { return {}; }
  [[nodiscard]] std::string_view kind() const override { return "test"; }
  Result<void> begin_backup(const store::BackupOrder& order) override {
    if (refusal) return *refusal;
    directory = order.directory;
    return {};
  }
  std::optional<Result<store::BackupDone>> finished_backup() override {
    return std::exchange(finished, std::nullopt);
  }

  [[nodiscard]] std::uint64_t backup_steps() const override { return steps; }
  void abandon_backup() override { abandoned = true; }

  std::uint64_t steps = 0;
  bool abandoned = false;
  std::optional<Error> refusal;
  std::string directory;
  std::optional<Result<store::BackupDone>> finished;
};

class BackupsTest : public testing::Test {
 protected:
  std::string output() {
    const std::string bytes(session.outbox().ready(BatchId{}));
    session.outbox().sent(bytes.size());
    return bytes;
  }

  FakeNetwork network;
  Telemetry telemetry;
  KeptLog log;
  BackupStore store;
  Connections connections{network, {}, telemetry};
  Session& session = *connections.add(ConnectionId{1}, "peer", Tick{});
  Backups backups{store, connections, log, telemetry};
  const Tick now{std::chrono::seconds(1)};
  const store::BackupOrder order{"/b", Millis(0), UnixMs{5}, "test"};
};

TEST_F(BackupsTest, BlocksItsConnectionFromTheOrderToTheOutcome) {
  backups.order(session, order);
  EXPECT_TRUE(backups.busy() && session.blocked);
  EXPECT_EQ(store.directory, "") << "it begins behind the turn's batch";
  backups.begin_ordered();
  EXPECT_EQ(store.directory, "/b");
  backups.collect_finished(now);
  EXPECT_TRUE(backups.busy());
  store::BackupDone done;
  done.records = 9;
  store.finished = done;
  backups.collect_finished(now);
  EXPECT_FALSE(backups.busy() || session.blocked);
  EXPECT_NE(output().find("records\r\n:9\r\n"), std::string::npos);
  EXPECT_EQ(telemetry.last_backup, UnixMs{5});
}

TEST_F(BackupsTest, OneThatMakesNoProgressIsGivenUp) {
  backups.order(session, order);
  backups.begin_ordered();
  backups.collect_finished(now);
  const Tick almost = now + limits::kBackupStallMax - std::chrono::milliseconds(1);
  store.steps = 1;
  backups.collect_finished(almost);
  backups.collect_finished(almost + limits::kBackupStallMax - std::chrono::milliseconds(1));
  EXPECT_TRUE(backups.busy()) << "it makes progress, however slowly";
  backups.collect_finished(almost + limits::kBackupStallMax);
  EXPECT_FALSE(backups.busy() || session.blocked);
  EXPECT_TRUE(store.abandoned);
  EXPECT_NE(output().find("its disk has not answered for 600 s"), std::string::npos);
}

TEST_F(BackupsTest, AnOrderThatTheStoreRefusesIsAnsweredWithItsReason) {
  store.refusal = Error{Code::kUnavailable, "no space"};
  backups.order(session, order);
  backups.begin_ordered();
  EXPECT_FALSE(backups.busy());
  EXPECT_EQ(output(), "-FULL backup: nothing was kept: no space\r\n");
  EXPECT_EQ(telemetry.last_backup, UnixMs{0});
}

TEST_F(BackupsTest, GoesOnWhenItsConnectionCloses) {
  backups.order(session, order);
  backups.begin_ordered();
  connections.close(session);
  connections.erase_closed_sessions();
  EXPECT_EQ(connections.blocked(), 0U);
  store.finished = store::BackupDone{};
  backups.collect_finished(now);
  EXPECT_FALSE(backups.busy());
  EXPECT_NE(log.lines.back().find("completed"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
