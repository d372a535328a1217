// Commands to a Redis over hiredis, with answers as values.
#pragma once

#include <hiredis/hiredis.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/redis/dsn.h"
#include "pawl/redis.h"
#include "pawl/result.h"

namespace pawl::guard {

struct RedisFailure {
  std::string text;           // of a refusal its first word is its name: PAWLSTALE, NOPERM
  bool disconnected = false;  // there was no answer: the command may have been executed

  // "PAWLSTALE".
  [[nodiscard]] std::string_view word() const;
};
// What a failure lets a caller conclude. One without an answer is kUnknown.
[[nodiscard]] Error to_error(const RedisFailure& failure);

struct RedisAnswer {
  RedisReply reply = {};
  std::optional<RedisFailure> failure = {};

  explicit operator bool() const { return !failure; }
  // Text, status or number as text; nothing for nil, and for what is not there.
  [[nodiscard]] std::optional<std::string> at(std::size_t item) const;
};
[[nodiscard]] std::optional<std::string> to_text(const RedisReply& reply);

using RedisWords = std::vector<std::string>;

[[nodiscard]] RedisAnswer command(redisContext* connection, const RedisWords& words);
// Logged in and with its database selected. kUnavailable, kDenied.
[[nodiscard]] Result<std::shared_ptr<redisContext>> connect(const RedisDsn& dsn);
// AUTH and SELECT on a new connection.
[[nodiscard]] Result<void> log_in(redisContext* connection, const RedisDsn& dsn);

// A server, or all nodes of a Redis Cluster: follows MOVED. Used by one thread at a time.
class RedisClient {
 public:
  static Result<std::shared_ptr<RedisClient>> open(const RedisDsn& dsn);

  RedisAnswer command(const RedisWords& words);
  // On each master of a Cluster, else on the only server. The first failure.
  RedisAnswer on_every_master(const RedisWords& words);
  [[nodiscard]] const RedisDsn& dsn() const { return dsn_; }
  [[nodiscard]] redisContext* connection() const { return first_.get(); }

 private:
  RedisClient(RedisDsn dsn, std::shared_ptr<redisContext> first);
  // nullptr: cannot be reached.
  redisContext* node(const std::string& address);

  const RedisDsn dsn_;
  const std::shared_ptr<redisContext> first_;
  std::map<std::string, std::shared_ptr<redisContext>> nodes_;  // by HOST:PORT
};

}  // namespace pawl::guard
