#include "guard/redis/health.h"

#include <gtest/gtest.h>

#include <map>

namespace pawl::guard {
namespace {

// A server that answers INFO and CONFIG GET from a table.
class FakeServer {
 public:
  std::map<std::string, std::string> info{
      {"persistence", "# Persistence\r\naof_enabled:1\r\n"},
      {"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"},
      {"memory", "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"}};
  std::string appendfsync = "always";

  GuardStrength strength() {
    return to_strength(find_weaknesses([&](const RedisWords& words) -> RedisAnswer {
      if (words[0] == "INFO") return {.reply = text(info[words[1]])};
      RedisReply pair{.type = RedisReply::Type::kArray, .items = {text("x"), text(appendfsync)}};
      if (appendfsync.empty()) return {.failure = RedisFailure{"NOPERM"}};
      return {.reply = pair};
    }));
  }

 private:
  static RedisReply text(std::string value) {
    return {.type = RedisReply::Type::kText, .text = std::move(value)};
  }
};

void expect_best_effort(FakeServer& server, std::string_view why) {
  const GuardStrength strength = server.strength();
  EXPECT_EQ(strength.strength, Strength::kBestEffort);
  EXPECT_NE(strength.because.find(why), std::string::npos) << strength.because;
}

TEST(RedisHealth, ServerThatSyncsEveryWriteIsFenced) {
  EXPECT_EQ(FakeServer{}.strength(), (GuardStrength{Strength::kFenced, {}}));
}

TEST(RedisHealth, ServerWithoutAofIsBestEffort) {
  FakeServer server;
  server.info["persistence"] = "aof_enabled:0\r\n";
  expect_best_effort(server, "appendonly is off");
}

TEST(RedisHealth, ServerThatSyncsEverySecondIsBestEffort) {
  FakeServer server;
  server.appendfsync = "everysec";
  expect_best_effort(server, "appendfsync is everysec");
}

TEST(RedisHealth, UnknownAppendfsyncIsBestEffort) {
  FakeServer server;
  server.appendfsync = "";
  expect_best_effort(server, "not known");
}

TEST(RedisHealth, ReplicasMakeItBestEffort) {
  FakeServer server;
  server.info["replication"] = "role:master\r\nconnected_slaves:2\r\n";
  expect_best_effort(server, "asynchronously");
}

TEST(RedisHealth, EvictionOfAnyKeyMakesItBestEffort) {
  FakeServer server;
  server.info["memory"] = "maxmemory:1000000\r\nmaxmemory_policy:allkeys-lfu\r\n";
  expect_best_effort(server, "may evict fences");
  server.info["memory"] = "maxmemory:1000000\r\nmaxmemory_policy:volatile-lru\r\n";
  EXPECT_EQ(server.strength().strength, Strength::kFenced);
}

}  // namespace
}  // namespace pawl::guard
