// What the engine counts.
#include "server/telemetry.h"

#include "server/testlib/engine_fixture.h"
#include "server/verbs/table.h"

namespace pawl::server {
namespace {

class TelemetryTest : public EngineTest {
 protected:
  const Telemetry& counted() { return engine().telemetry(); }
  const Telemetry::Command& command(std::string_view name) {
    return counted().commands[verb_index(name)];
  }
  std::uint64_t acquires(AcquireResult result) {
    return counted().acquires[static_cast<std::size_t>(result)];
  }
  std::uint64_t ended(core::Ending how) {
    return counted().ended[static_cast<std::size_t>(how) - 1];
  }
  template <class Bounds>
  static std::uint64_t observed(const Histogram<Bounds>& histogram) {
    std::uint64_t all = 0;
    for (const std::uint64_t count : histogram.counts) all += count;
    return all;
  }
};

TEST_F(TelemetryTest, AValueOnABoundBelongsBelowIt) {
  Durations durations;
  durations.observe(Nanos(1s));
  durations.observe(Nanos(1s) + Nanos(1));
  durations.observe(Nanos(100h));
  const auto at = [&](std::int64_t bound) {
    const auto& bounds = Seconds::kUpTo;
    return durations.counts[static_cast<std::size_t>(
        std::find(bounds.begin(), bounds.end(), bound) - bounds.begin())];
  };
  EXPECT_EQ(at(Seconds::kSecond), 1U);
  EXPECT_EQ(at(5 * Seconds::kSecond / 2), 1U);
  EXPECT_EQ(durations.counts.back(), 1U);
}

TEST_F(TelemetryTest, EveryAcquireEndsInExactlyOneResult) {
  Client holder = connect();
  Client other = connect();
  const std::string lease = lease_in(holder.ask("ACQUIRE a AND b TTL 15000"));
  other.ask("ACQUIRE a TTL 1000");             // busy
  other.ask("ACQUIRE b TTL 1000 WAIT 10000");  // waits, and is granted
  clock.advance(3s);
  holder.ask("RELEASE " + lease);
  other.ask("ACQUIRE free TTL 1000 LIMIT 0");  // no such limit: never reached the core
  EXPECT_EQ(acquires(AcquireResult::kGranted), 2U);
  EXPECT_EQ(acquires(AcquireResult::kBusy), 1U);
  EXPECT_EQ(counted().tokens, 2U) << "two locks under one lease are one token";
  EXPECT_EQ(observed(counted().acquire), 2U);
  EXPECT_EQ(observed(counted().wait), 1U) << "only one of them had to wait";
  EXPECT_EQ(command("ACQUIRE").ok, 3U);
  EXPECT_EQ(command("ACQUIRE").error, 1U);
}

TEST_F(TelemetryTest, LeasesAreCountedByHowTheyEndedAndHowLongTheyWereHeld) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 1000"));
  clock.advance(200ms);
  client.ask("RENEW " + lease);
  EXPECT_EQ(counted().renewed, 1U);
  EXPECT_NEAR(counted().margin.sum / Seconds::kPerUnit, 0.8, 0.01);
  for (int i = 0; i < 20; ++i) {
    clock.advance(100ms);
    turn();
  }
  client.ask("RENEW " + lease);
  EXPECT_EQ(ended(core::Ending::kExpired), 1U);
  EXPECT_NEAR(counted().hold.sum / Seconds::kPerUnit, 1.2, 0.2);
  EXPECT_EQ(counted().not_renewed, 1U);
  EXPECT_EQ(counted().used_after_expiry, 1U);
  client.ask("RELEASE " + lease_in(client.ask("ACQUIRE a TTL 1000")));
  EXPECT_EQ(ended(core::Ending::kReleased), 1U);
}

// A holder that comes back late and knows it releases; it sends no RENEW any more.
TEST_F(TelemetryTest, ALateReleaseIsCountedLikeALateRenewal) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 1000"));
  live(2s);
  EXPECT_EQ(ended(core::Ending::kExpired), 1U) << "and no late command was needed for that";
  EXPECT_EQ(counted().used_after_expiry, 0U);
  client.ask("RELEASE " + lease);
  EXPECT_EQ(counted().used_after_expiry, 1U);
}

TEST_F(TelemetryTest, ASecondReleaseAndAnUnknownLeaseAreNotLate) {
  Client client = connect();
  const std::string lease = lease_in(client.ask("ACQUIRE a TTL 1000"));
  client.ask("RELEASE " + lease);
  client.ask("RELEASE " + lease);
  client.ask("RELEASE 00000000000000000000000000000001");
  EXPECT_EQ(counted().used_after_expiry, 0U);
}

TEST_F(TelemetryTest, AnAcquireThatIsRefusedEarlyIsCountedAsRefused) {
  Client client = connect();
  store.set_room(false);
  client.ask("ACQUIRE a TTL 1000");
  client.ask("ACQUIRE a TTL 1000 WAIT 1000");
  EXPECT_EQ(acquires(AcquireResult::kRefused), 2U);
  EXPECT_EQ(command("ACQUIRE").error, 2U);
  client.ask("ACQUIRE");  // Malformed.
  EXPECT_EQ(acquires(AcquireResult::kRefused), 2U);
}

TEST_F(TelemetryTest, TheMarginOfARenewalIsComparedWithItsTtl) {
  Client client = connect();
  for (const char* ttl : {"1000", "10000"}) {
    const std::string lease = lease_in(client.ask(std::string("ACQUIRE ") + ttl + " TTL " + ttl));
    live(Millis(std::stoi(ttl)) * 9 / 10);
    client.ask("RENEW " + lease);
  }
  EXPECT_NEAR(counted().margin_ratio.sum / Ratio::kPerUnit, 0.2, 0.01) << "a tenth of each";
  EXPECT_EQ(counted().margin_ratio.counts[2], 2U) << "both up to 0.1";
}

TEST_F(TelemetryTest, ABreakCountsWhenItNamedALiveToken) {
  Client client = connect();
  client.ask("ACQUIRE a TTL 1000");
  client.ask("BREAK a TOKEN 7 NOW REASON mistaken");
  EXPECT_EQ(counted().breaks, 0U);
  client.ask("BREAK a TOKEN 1 NOW REASON stuck");
  EXPECT_EQ(counted().breaks, 1U);
  EXPECT_EQ(ended(core::Ending::kBroken), 1U);
}

TEST_F(TelemetryTest, UnknownCommandsShareOnePlace) {
  Client client = connect();
  client.ask("FROBNICATE");
  client.ask("GET key");
  EXPECT_EQ(counted().commands[counted().unknown()].error, 2U);
  EXPECT_EQ(observed(counted().commands[counted().unknown()].duration), 2U);
}

}  // namespace
}  // namespace pawl::server
