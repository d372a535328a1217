// pawl::RedisGuard against a real Redis, with leases of a real pawld.
#include "pawl/redis.h"

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "drill/testlib/threaded_proxy.h"
#include "e2e/pawld_process.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

std::uint16_t server_port() {
  const char* port = std::getenv("PAWL_TEST_REDIS_PORT");
  if (port == nullptr)
    throw std::runtime_error("set PAWL_TEST_REDIS_PORT (pawltest.with_database does)");
  return static_cast<std::uint16_t>(std::atoi(port));
}

class Connection {
 public:
  explicit Connection(std::uint16_t port = server_port())
      : raw_(redisConnect("127.0.0.1", port), redisFree) {
    if (raw_->err != 0) throw std::runtime_error(raw_->errstr);
  }
  [[nodiscard]] redisContext* get() const { return raw_.get(); }
  // As text; fails the test when the command does.
  std::string ask(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      lengths.push_back(word.size());
    }
    void* answer =
        redisCommandArgv(get(), static_cast<int>(words.size()), texts.data(), lengths.data());
    const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(answer),
                                                             freeReplyObject);
    EXPECT_NE(reply, nullptr) << words.front();
    if (reply == nullptr) return "";
    EXPECT_NE(reply->type, REDIS_REPLY_ERROR) << words.front() << ": " << reply->str;
    return reply->str == nullptr ? "" : std::string(reply->str, reply->len);
  }

 private:
  std::unique_ptr<redisContext, void (*)(redisContext*)> raw_;
};

class RedisFront : public testing::Test {
 protected:
  RedisFront() {
    db.ask({"FLUSHALL"});
    call("pawl_protect", {"orders:*", "static", "", "enforce", "change"});
  }

  void call(const std::string& function, const std::vector<std::string>& arguments) {
    std::vector<std::string> words{"FCALL", function, "1", "{orders}:pawl"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    db.ask(words);
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
  std::string n() { return db.ask({"GET", "orders:n"}); }

  const std::vector<std::string> increment{"INCR", "orders:n"};
  PawldProcess pawld;
  Client client{pawld.address()};
  Connection db;
  RedisGuard guard{db.get()};
};

TEST_F(RedisFront, WriteUnderALiveLeaseIsInEffect) {
  const Lease lease = take("a");
  for (int i = 1; i <= 3; ++i) {
    const auto done = guard.write(lease, "orders", increment);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, Verdict::kAdmitted);
    EXPECT_EQ(done->decision.token, lease.token());
    EXPECT_EQ(done->reply, (RedisReply{.type = RedisReply::Type::kInteger, .integer = i}));
  }
  EXPECT_EQ(n(), "3");
}

TEST_F(RedisFront, StaleTokenIsRefusedAndTheCommandDoesNotRun) {  // Hard cases 1, 54.
  const Lease old = take("a");
  const std::uint64_t newer = overtake();
  const auto done = guard.write(old, "orders", increment);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_NE(done.error().detail.find("max=" + std::to_string(newer)), std::string::npos);
  EXPECT_EQ(n(), "");
}

TEST_F(RedisFront, CheckNeverMovesAFence) {
  EXPECT_EQ(guard.check("orders", 50)->verdict, Verdict::kAdmitted);
  ASSERT_TRUE(guard.advance("orders", 34, 0s));
  const auto stale = guard.check("orders", 33);
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->verdict, Verdict::kStale);
  EXPECT_EQ(stale->max, 34u);
  EXPECT_EQ(stale->mode, GuardMode::kEnforce);
  EXPECT_EQ(*guard.advance("orders", 34, 0s), 34u);
}

TEST_F(RedisFront, RepeatedOperationTakesEffectOnce) {  // Hard case 55.
  const Lease lease = take("a");
  for (const Verdict wanted : {Verdict::kAdmitted, Verdict::kReplayed}) {
    const auto done = guard.write(lease, "orders", increment, {.operation = 7});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, wanted);
  }
  EXPECT_EQ(n(), "1");
}

TEST_F(RedisFront, FailedCommandReportsRedissMessage) {
  const Lease lease = take("a");
  db.ask({"SET", "orders:n", "text"});
  const auto done = guard.write(lease, "orders", increment);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_NE(done.error().detail.find("not an integer"), std::string::npos);
}

TEST_F(RedisFront, ShadowAppliesAStaleWriteAndReportsIt) {
  const Lease old = take("a");
  overtake();
  call("pawl_mode", {"shadow", "", "", "mode", "change"});
  const auto done = guard.write(old, "orders", increment);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->decision.verdict, Verdict::kStale);
  EXPECT_TRUE(done->decision.let_through);
  EXPECT_EQ(n(), "1");
}

TEST_F(RedisFront, AcquireWithGuardsAdvancesBeforeItReturns) {
  const Lease lease = take("a", {.guards = {{&guard, "orders"}}});
  EXPECT_EQ(guard.check("orders", lease.token())->max, lease.token());
}

TEST_F(RedisFront, FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  ASSERT_TRUE(guard.advance("orders", 1'000'000, 0s));
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", increment);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kIssuerBehind) << done.error().detail;
}

TEST_F(RedisFront, ServerThatSyncsEveryWriteIsFenced) {
  EXPECT_EQ(guard.strength().strength, Strength::kFenced) << guard.strength().because;
}

TEST_F(RedisFront, GuardThatIsNotInstalledIsNamed) {
  const std::string dump = db.ask({"FUNCTION", "DUMP"});
  db.ask({"FUNCTION", "DELETE", "pawl"});
  const auto done = guard.advance("orders", 34, 0s);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().detail.find("pawl guard install redis"), std::string::npos);
  db.ask({"FUNCTION", "RESTORE", dump});
}

class RedisUnknownOutcome : public RedisFront {
 protected:
  static constexpr const char* kWrite = "pawl_write";

  drill::ThreadedProxy proxy{server_port()};
  Connection through{proxy.port()};
  RedisGuard cut{through.get()};
};

TEST_F(RedisUnknownOutcome, OperationNumberSettlesIt) {
  const Lease lease = take("a");
  std::uint64_t operation = 0;
  for (const auto how : {drill::CloseAt::kReply, drill::CloseAt::kRequest}) {
    ASSERT_TRUE(cut.check("orders", lease.token()));
    proxy.close_at(how, kWrite);
    const auto done = cut.write(lease, "orders", increment, {.operation = ++operation});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, Verdict::kAdmitted);
    EXPECT_EQ(n(), std::to_string(operation)) << "once, neither twice nor never";
  }
}

TEST_F(RedisUnknownOutcome, WithoutAnOperationNumberItStaysUnknown) {
  const Lease lease = take("a");
  proxy.close_at(drill::CloseAt::kReply, kWrite);
  const auto done = cut.write(lease, "orders", increment);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
  EXPECT_EQ(n(), "1");
}

}  // namespace
}  // namespace pawl
