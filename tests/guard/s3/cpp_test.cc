// pawl::S3Guard against a small S3 of the tests, with leases of a real pawld.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "drill/testlib/threaded_proxy.h"
#include "e2e/pawld_process.h"
#include "guard/s3/kind.h"
#include "pawl/pawl.h"
#include "pawl/s3.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string("set ") + name);
  return value;
}

std::uint16_t server_port() {
  return static_cast<std::uint16_t>(std::stoi(environment("PAWL_TEST_S3_PORT")));
}

S3Options options_at(std::uint16_t port) {
  return {.bucket = "shop",
          .endpoint = "http://127.0.0.1:" + std::to_string(port),
          .access_key = environment("AWS_ACCESS_KEY_ID"),
          .secret_key = environment("AWS_SECRET_ACCESS_KEY")};
}

class S3Front : public testing::Test {
 protected:
  S3Front() {
    static int count = 0;
    key = "orders-" + std::to_string(++count);
    const std::string dsn =
        "bucket=shop endpoint=http://127.0.0.1:" + std::to_string(server_port());
    administration = *guard::open_s3_administration(dsn);
    EXPECT_TRUE(administration->install(guard::Rehearse::kNo));
    EXPECT_TRUE(administration->protect({.table = key, .mode = "enforce"}, guard::Rehearse::kNo));
  }

  Lease take(const std::string& lock, AcquireOptions options = {}) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) throw std::runtime_error(lease.error().detail);
    return *std::move(lease);
  }
  // A newer holder has been at the guard.
  std::uint64_t overtake() {
    const Lease newer = take("newer");
    S3Guard other(options_at(server_port()));
    const auto advanced = other.advance(key, newer.token(), 5s);
    EXPECT_TRUE(advanced) << advanced.error().detail;
    return newer.token();
  }
  std::string content() {
    const auto found = S3Guard(options_at(server_port())).read(key);
    EXPECT_TRUE(found) << found.error().detail;
    return found ? found->value_or("(none)") : "";
  }
  static S3Guard::Change add(const std::string& text) {
    return [text](const std::optional<std::string>& before) { return before.value_or("") + text; };
  }

  std::string key;
  PawldProcess pawld;
  Client client{pawld.address()};
  std::unique_ptr<guard::Administration> administration;
  S3Guard guard{options_at(server_port())};
};

TEST_F(S3Front, WriteUnderALiveLeaseIsInEffect) {
  const Lease lease = take("a");
  for (const std::string text : {"one", "two"}) {
    const auto done = guard.write(lease, key, text);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    EXPECT_EQ(done->token, lease.token());
    EXPECT_EQ(content(), text);
  }
}

TEST_F(S3Front, LargeContentIsReadBack) {
  const Lease lease = take("a");
  std::string large(3'000'000, 'x');
  large[17] = '\0';
  ASSERT_TRUE(guard.write(lease, key, large));
  EXPECT_EQ(content(), large);
}

TEST_F(S3Front, UpdateIsMadeOfWhatItReplaces) {
  const Lease lease = take("a");
  ASSERT_TRUE(guard.update(lease, key, add("x")));
  S3Guard other(options_at(server_port()));
  ASSERT_TRUE(other.update(lease, key, add("y")));
  ASSERT_TRUE(guard.update(lease, key, add("z"))) << "what it remembers is no longer there";
  EXPECT_EQ(content(), "xyz");
}

TEST_F(S3Front, StaleTokenIsRefusedAndNothingIsWritten) {  // Hard cases 1, 54.
  const Lease old = take("a");
  ASSERT_TRUE(guard.write(old, key, "old"));
  const std::uint64_t newer = overtake();
  const auto done = guard.write(old, key, "late");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_NE(done.error().detail.find("max=" + std::to_string(newer)), std::string::npos);
  EXPECT_EQ(content(), "old");
}

TEST_F(S3Front, CheckNeverMovesAFence) {
  EXPECT_EQ(guard.check(key, 50)->verdict, Verdict::kAdmitted);
  ASSERT_TRUE(guard.advance(key, 34, 0s));
  const auto stale = guard.check(key, 33);
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->verdict, Verdict::kStale);
  EXPECT_EQ(stale->max, 34u);
  EXPECT_EQ(stale->mode, GuardMode::kEnforce);
  EXPECT_EQ(*guard.advance(key, 34, 0s), 34u);
}

TEST_F(S3Front, RepeatedOperationTakesEffectOnce) {  // Hard case 55.
  const Lease lease = take("a");
  for (const Verdict wanted : {Verdict::kAdmitted, Verdict::kReplayed}) {
    const auto done = guard.update(lease, key, add("x"), {.operation = 7});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, wanted);
  }
  EXPECT_EQ(content(), "x");
}

TEST_F(S3Front, RemovedContentKeepsTheFence) {
  const Lease old = take("a");
  const Lease lease = take("b");
  ASSERT_TRUE(guard.write(lease, key, "x"));
  ASSERT_TRUE(guard.remove(lease, key));
  EXPECT_EQ(content(), "(none)");
  EXPECT_FALSE(guard.write(old, key, "y"));
}

TEST_F(S3Front, AcquireWithGuardsAdvancesBeforeItReturns) {
  const Lease lease = take("a", {.guards = {{&guard, key}}});
  EXPECT_EQ(guard.check(key, lease.token())->max, lease.token());
}

TEST_F(S3Front, FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  ASSERT_TRUE(guard.advance(key, 1'000'000, 0s));
  const Lease lease = take("a");
  const auto done = guard.write(lease, key, "x");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kIssuerBehind) << done.error().detail;
}

TEST_F(S3Front, OptionsThatCannotWorkAreNamed) {
  S3Guard nowhere({.bucket = "shop"});
  const auto done = nowhere.advance(key, 34, 0s);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().detail.find("credentials"), std::string::npos);
}

class S3UnknownOutcome : public S3Front {
 protected:
  drill::ThreadedProxy proxy{server_port()};
  S3Guard cut{options_at(proxy.port())};
};

// Without operation numbers: what the object says settles it.
TEST_F(S3UnknownOutcome, IsSettledByReadingBack) {
  const Lease lease = take("a");
  std::string wanted;
  for (const auto how : {drill::CloseAt::kReply, drill::CloseAt::kRequest}) {
    ASSERT_TRUE(cut.check(key, lease.token()));
    proxy.close_at(how, "PUT ");
    const auto done = cut.update(lease, key, add("x"));
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    wanted += "x";
    EXPECT_EQ(content(), wanted) << "once, neither twice nor never";
  }
}

}  // namespace
}  // namespace pawl
