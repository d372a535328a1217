#include "server/metrics.h"

#include <gmock/gmock.h>

#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

using testing::HasSubstr;

class MetricsTest : public EngineTest {
 protected:
  std::string text() { return metrics_text(readings_of(engine()), read_process("/nonexistent")); }
};

TEST_F(MetricsTest, EveryFamilyThatPawldCanKnowIsThereWithHelpAndType) {
  connect().ask("PING");
  const std::string all = text();
  for (const char* name : {"pawl_lock_acquires_total",
                           "pawl_lock_acquire_duration_seconds",
                           "pawl_lock_wait_duration_seconds",
                           "pawl_lock_hold_duration_seconds",
                           "pawl_locks",
                           "pawl_lock_waiters",
                           "pawl_lock_asks_total",
                           "pawl_lock_breaks_total",
                           "pawl_leases",
                           "pawl_lease_renewals_total",
                           "pawl_lease_renew_margin_seconds",
                           "pawl_lease_renew_margin_ratio",
                           "pawl_lease_ended_total",
                           "pawl_lease_expired_while_executing_total",
                           "pawl_tokens_issued_total",
                           "pawl_token_regressions_total",
                           "pawl_connections",
                           "pawl_commands_total",
                           "pawl_command_duration_seconds",
                           "pawl_store_commit_duration_seconds",
                           "pawl_store_batch_size",
                           "pawl_store_size_bytes",
                           "pawl_store_full",
                           "pawl_store_damage_total",
                           "pawl_store_damaged",
                           "pawl_restoring_seconds",
                           "pawl_last_backup_timestamp_seconds",
                           "pawl_leader",
                           "pawl_ready",
                           "pawl_auth_failures_total",
                           "pawl_connections_refused_total",
                           "pawl_event_loop_lag_seconds",
                           "pawl_pauses_seconds_total",
                           "pawl_build_info",
                           "process_cpu_seconds_total",
                           "process_resident_memory_bytes",
                           "process_open_fds",
                           "process_start_time_seconds"}) {
    EXPECT_THAT(all, HasSubstr(std::string("# HELP ") + name + " "));
    EXPECT_THAT(all, HasSubstr(std::string("# TYPE ") + name + " "));
    EXPECT_THAT(all, HasSubstr(std::string("\n") + name));
  }
}

TEST_F(MetricsTest, BoundsAreShownAsPeopleWriteThem) {
  const std::string all = text();
  for (const char* bound : {"0.00025", "0.0025", "0.1", "2.5", "3600", "+Inf"}) {
    EXPECT_THAT(all, HasSubstr(std::string("pawl_lock_hold_duration_seconds_bucket{le=\"") + bound +
                               "\"}"));
  }
}

TEST_F(MetricsTest, TheTimeOfTheLastBackupIsInSeconds) {
  Readings readings;
  EXPECT_THAT(metrics_text(readings, {}), HasSubstr("\npawl_last_backup_timestamp_seconds 0\n"));
  readings.telemetry.last_backup = UnixMs{1'794'825'198'500};
  EXPECT_THAT(metrics_text(readings, {}),
              HasSubstr("\npawl_last_backup_timestamp_seconds 1794825198.5\n"));
}

TEST_F(MetricsTest, NoLockNameAndNoOwnerIsALabel) {
  connect().ask("ACQUIRE payroll/2026 TTL 1000 OWNER mallory");
  const std::string all = text();
  EXPECT_THAT(all, Not(HasSubstr("payroll")));
  EXPECT_THAT(all, Not(HasSubstr("mallory")));
  EXPECT_THAT(all, HasSubstr("pawl_leases 1\n"));
  EXPECT_THAT(all, HasSubstr("pawl_locks{state=\"held\"} 1\n"));
}

TEST_F(MetricsTest, ALockThatADelayKeepsClosedIsNotHeld) {
  Client client = connect();
  client.ask("ACQUIRE a TTL 1000 DELAY 30000");
  for (int i = 0; i < 12; ++i) {
    clock.advance(100ms);
    turn();
  }
  EXPECT_THAT(text(), HasSubstr("pawl_locks{state=\"closed\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("pawl_locks{state=\"held\"} 0\n"));
  for (int i = 0; i < 301; ++i) {
    clock.advance(100ms);
    turn();
  }
  EXPECT_THAT(text(), HasSubstr("pawl_locks{state=\"closed\"} 0\n"));
}

TEST_F(MetricsTest, ConnectionsFromWithinTheProcessAreThoseOfHttp) {
  connect();
  engine().connected(ConnectionId{77}, "http:127.0.0.1:9");
  EXPECT_THAT(text(), HasSubstr("pawl_connections{proto=\"resp\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("pawl_connections{proto=\"http\"} 1\n"));
}

TEST_F(MetricsTest, ConnectionsOfTheHttpPortAreShownWithTheirLimit) {
  EXPECT_THAT(text(), Not(HasSubstr("pawl_http_connections")));
  const std::string all = metrics_text(readings_of(engine()), {}, HttpReadings{3, 1024, 2});
  EXPECT_THAT(all, HasSubstr("\npawl_http_connections 3\n"));
  EXPECT_THAT(all, HasSubstr("\npawl_http_connections_limit 1024\n"));
  EXPECT_THAT(all, HasSubstr("\npawl_http_connections_refused_total 2\n"));
}

TEST_F(MetricsTest, AFullDiskIsNotReadyAndLeavesTheLeaderAsItIs) {
  EXPECT_THAT(text(), HasSubstr("pawl_ready 1\n"));
  store.set_room(false);
  EXPECT_THAT(text(), HasSubstr("pawl_store_full 1\n"));
  EXPECT_THAT(text(), HasSubstr("pawl_ready 0\n"));
  EXPECT_THAT(text(), HasSubstr("pawl_leader 1\n"));
}

TEST_F(MetricsTest, SpaceAndCertificateAreShownOnlyWhereTheyExist) {
  const ProcessReadings process = read_process("/");
  EXPECT_THAT(metrics_text(readings_of(engine()), process), Not(HasSubstr("pawl_store_free")));
  EXPECT_THAT(text(), Not(HasSubstr("pawl_tls_certificate_expiry")));
  store.set_space({.free = 5, .needed = 7, .volume_needed = 9});
  engine().set_certificate_expiry(1'893'456'000);
  const std::string all = metrics_text(readings_of(engine()), process);
  ASSERT_TRUE(process.free_bytes.has_value());
  EXPECT_THAT(all, HasSubstr("\npawl_store_free_bytes "));
  EXPECT_THAT(all, HasSubstr("pawl_store_free_needed_bytes 7\n"));
  EXPECT_THAT(all, HasSubstr("pawl_tls_certificate_expiry_timestamp_seconds 1893456000\n"));
}

TEST_F(MetricsTest, TheProcessIsSeenAsTheKernelSeesIt) {
  const ProcessReadings process = read_process("/nonexistent");
  EXPECT_GT(process.resident_bytes, 1'000'000U);
  EXPECT_GT(process.open_descriptors, 2U);
  EXPECT_GT(process.start_seconds, 1.7e9);
  EXPECT_EQ(process.store_bytes, 0U);
}

}  // namespace
}  // namespace pawl::server
