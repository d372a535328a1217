// pawl::EtcdGuard against a real etcd, with leases of a real pawld.
#include "pawl/etcd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "drill/testlib/threaded_proxy.h"
#include "e2e/pawld_process.h"
#include "guard/etcd/kind.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

std::uint16_t server_port() {
  const char* port = std::getenv("PAWL_TEST_ETCD_PORT");
  if (port == nullptr)
    throw std::runtime_error("set PAWL_TEST_ETCD_PORT (pawltest.with_database does)");
  return static_cast<std::uint16_t>(std::atoi(port));
}

EtcdOptions options_of(std::uint16_t port) {
  // A busy machine may take its time.
  return {.endpoints = "127.0.0.1:" + std::to_string(port), .time_limit = 60s};
}

class EtcdFront : public testing::Test {
 protected:
  EtcdFront() {
    const std::string dsn = "127.0.0.1:" + std::to_string(server_port());
    administration = *guard::open_etcd_administration(dsn);
    db = *guard::connect_etcd(dsn);
    need(administration->uninstall(guard::Rehearse::kNo));
    if (!administration->install(guard::Rehearse::kNo)) throw std::runtime_error("no guard");
    remove("orders/");
    if (!administration->protect({.table = "orders/*", .mode = "enforce"}, guard::Rehearse::kNo))
      throw std::runtime_error("no guard");
  }

  static void need(const Result<void>& done) {
    if (!done) throw std::runtime_error(done.error().detail);
  }
  void remove(const std::string& prefix) {
    ASSERT_TRUE(
        db->transact({.success = {etcd::DeleteRangeRequest{prefix, etcd::end_of_prefix(prefix)}}},
                     guard::EtcdSending::kUntilDecided));
  }
  Lease take(const std::string& lock, AcquireOptions options = {}) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) throw std::runtime_error(lease.error().detail);
    return *std::move(lease);
  }
  // A newer holder has been at the guard.
  std::uint64_t overtake() {
    const Lease newer = take("newer");
    const auto advanced = guard.advance("orders", newer.token(), 5s);
    EXPECT_TRUE(advanced) << advanced.error().detail;
    return newer.token();
  }
  // How often the key was put; 0: it is not there.
  std::int64_t puts(const std::string& key = "orders/n") {
    const auto found = db->range(key, "");
    if (!found) throw std::runtime_error(found.error().detail);
    return found->empty() ? 0 : found->front().version;
  }

  const std::vector<EtcdChange> change{EtcdPut{"orders/n", "1"}};
  PawldProcess pawld;
  Client client{pawld.address()};
  std::unique_ptr<guard::Administration> administration;
  std::shared_ptr<guard::EtcdConnection> db;
  EtcdGuard guard{options_of(server_port())};
};

TEST_F(EtcdFront, WriteUnderALiveLeaseIsInEffect) {
  const Lease lease = take("a");
  for (int i = 1; i <= 3; ++i) {
    const auto done = guard.write(lease, "orders", change);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, Verdict::kAdmitted);
    EXPECT_EQ(done->decision.token, lease.token());
  }
  EXPECT_EQ(puts(), 3);
}

TEST_F(EtcdFront, PutsAndDeletesOfOneWriteAreOneStep) {
  const Lease lease = take("a");
  ASSERT_TRUE(guard.write(lease, "orders", {EtcdPut{"orders/a/1", ""}, EtcdPut{"orders/b", ""}}));
  ASSERT_TRUE(
      guard.write(lease, "orders", {EtcdDelete{"orders/a/", true}, EtcdPut{"orders/c", ""}}));
  EXPECT_EQ(puts("orders/a/1"), 0);
  EXPECT_EQ(puts("orders/b"), 1);
  EXPECT_EQ(puts("orders/c"), 1);
}

TEST_F(EtcdFront, StaleTokenIsRefusedAndNothingChanges) {  // Hard cases 1, 54.
  const Lease old = take("a");
  const std::uint64_t newer = overtake();
  const auto done = guard.write(old, "orders", change);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_NE(done.error().detail.find("max=" + std::to_string(newer)), std::string::npos);
  EXPECT_EQ(puts(), 0);
}

TEST_F(EtcdFront, CheckNeverMovesAFence) {
  EXPECT_EQ(guard.check("orders", 50)->verdict, Verdict::kAdmitted);
  ASSERT_TRUE(guard.advance("orders", 34, 0s));
  const auto stale = guard.check("orders", 33);
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->verdict, Verdict::kStale);
  EXPECT_EQ(stale->max, 34u);
  EXPECT_EQ(stale->mode, GuardMode::kEnforce);
  EXPECT_EQ(*guard.advance("orders", 34, 0s), 34u);
}

TEST_F(EtcdFront, RepeatedOperationTakesEffectOnce) {  // Hard case 55.
  const Lease lease = take("a");
  for (const Verdict wanted : {Verdict::kAdmitted, Verdict::kReplayed}) {
    const auto done = guard.write(lease, "orders", change, {.operation = 7});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, wanted);
  }
  EXPECT_EQ(puts(), 1);
}

TEST_F(EtcdFront, ConditionOfTheCallerIsReported) {
  const Lease lease = take("a");
  for (const bool met : {true, false}) {
    const auto done = guard.write(lease, "orders", change, {.conditions = {{"orders/n", 0}}});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->met, met);
  }
  EXPECT_EQ(puts(), 1);
}

TEST_F(EtcdFront, MoreThanEtcdTakesAtOnceIsRefusedWhole) {
  const Lease lease = take("a");
  std::vector<EtcdChange> many;
  for (int i = 0; i < 200; ++i) many.emplace_back(EtcdPut{"orders/" + std::to_string(i), ""});
  const auto too_many = guard.write(lease, "orders", many);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().code, Code::kInvalid);
  EXPECT_NE(too_many.error().detail.find("too many operations"), std::string::npos);
  const auto too_large =
      guard.write(lease, "orders", {EtcdPut{"orders/n", std::string(2 << 20, 'x')}});
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, Code::kInvalid);
  EXPECT_EQ(puts() + puts("orders/7"), 0);
  ASSERT_TRUE(guard.write(lease, "orders", change)) << "the connection still works";
}

TEST_F(EtcdFront, ShadowAppliesAStaleWriteAndReportsIt) {
  const Lease old = take("a");
  overtake();
  need(administration->set_mode({.guard = "orders", .mode = "shadow"}, guard::Rehearse::kNo));
  const auto done = guard.write(old, "orders", change);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->decision.verdict, Verdict::kStale);
  EXPECT_TRUE(done->decision.let_through);
  EXPECT_EQ(puts(), 1);
}

TEST_F(EtcdFront, AcquireWithGuardsAdvancesBeforeItReturns) {
  const Lease lease = take("a", {.guards = {{&guard, "orders"}}});
  EXPECT_EQ(guard.check("orders", lease.token())->max, lease.token());
}

TEST_F(EtcdFront, FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  ASSERT_TRUE(guard.advance("orders", 1'000'000, 0s));
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", change);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kIssuerBehind) << done.error().detail;
}

TEST_F(EtcdFront, EtcdWithoutUsersIsBestEffort) {
  const GuardStrength strength = guard.strength();
  EXPECT_EQ(strength.strength, Strength::kBestEffort);
  EXPECT_NE(strength.because.find("no users"), std::string::npos) << strength.because;
}

TEST_F(EtcdFront, ResourceWithoutAGuardIsNamed) {
  const auto done = guard.advance("carts", 34, 0s);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_NE(done.error().detail.find("pawl guard protect etcd"), std::string::npos);
}

TEST_F(EtcdFront, EtcdThatIsNotThereIsUnavailable) {
  EtcdGuard nowhere({.endpoints = "127.0.0.1:1", .time_limit = 300ms});
  const Lease lease = take("a");
  const auto done = nowhere.write(lease, "orders", change);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable) << done.error().detail;
}

class EtcdUnknownOutcome : public EtcdFront {
 protected:
  // In the bytes of the transaction, which HTTP/2 does not compress.
  static constexpr const char* kWrite = "orders/n";

  drill::ThreadedProxy proxy{server_port()};
  EtcdGuard cut{options_of(proxy.port())};
};

TEST_F(EtcdUnknownOutcome, OperationNumberSettlesIt) {
  const Lease lease = take("a");
  std::uint64_t operation = 0;
  for (const auto how : {drill::CloseAt::kReply, drill::CloseAt::kRequest}) {
    ASSERT_TRUE(cut.check("orders", lease.token()));
    proxy.close_at(how, kWrite);
    const auto done = cut.write(lease, "orders", change, {.operation = ++operation});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, Verdict::kAdmitted);
    EXPECT_EQ(puts(), static_cast<std::int64_t>(operation)) << "once, neither twice nor never";
  }
}

TEST_F(EtcdUnknownOutcome, WithoutAnOperationNumberItStaysUnknown) {
  const Lease lease = take("a");
  ASSERT_TRUE(cut.check("orders", lease.token()));
  proxy.close_at(drill::CloseAt::kReply, kWrite);
  const auto done = cut.write(lease, "orders", change);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown) << done.error().detail;
  EXPECT_EQ(puts(), 1);
}

// Connections stay open, and nothing passes any more: an etcd that is frozen, or was cut off.
class SilentEtcd : public EtcdUnknownOutcome {
 protected:
  // With a connection, over which etcd is then silent. `known`: this guard's policy was read.
  void fall_silent(bool known) {
    proxy.cut(drill::Cut::kNone);
    const std::string resource = known ? "orders" : "carts";
    // A busy machine may need more than one call.
    while (true) {
      const auto checked = brief.check(resource, 1);
      if (checked || checked.error().code == Code::kInvalid) break;
    }
    proxy.cut(drill::Cut::kBoth);
  }

  EtcdGuard brief{{.endpoints = proxy.address(), .time_limit = 1s}};
};

TEST_F(SilentEtcd, CallThatOnlyReadsSaysThatNothingHappened) {
  fall_silent(true);
  const auto checked = brief.check("orders", 1);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kUnavailable) << checked.error().detail;
  EXPECT_NE(checked.error().detail.find("Nothing happened"), std::string::npos);
}

TEST_F(SilentEtcd, WriteThatCouldNotReadThePolicySaysThatNothingHappened) {
  const Lease lease = take("a");
  fall_silent(false);
  const auto done = brief.write(lease, "orders", change);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable) << done.error().detail;
  proxy.cut(drill::Cut::kNone);
  EXPECT_EQ(puts(), 0);
}

TEST_F(SilentEtcd, WriteEndsAlthoughItsLeaseLives) {
  const Lease lease = take("a");
  for (const std::uint64_t operation : {std::uint64_t{0}, std::uint64_t{1}}) {
    fall_silent(true);
    const auto done = brief.write(lease, "orders", change, {.operation = operation});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kUnknown) << done.error().detail;
  }
}

TEST_F(SilentEtcd, AdvanceEndsAndMayHaveHappened) {
  fall_silent(true);
  const auto done = brief.advance("orders", 34, 0s);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown) << done.error().detail;
}

}  // namespace
}  // namespace pawl
