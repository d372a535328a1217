// One guarded write to Redis, tried until its outcome is known. What each end means is in
// pawl/redis.h.
#pragma once

#include <functional>
#include <string>

#include "guard/redis/calls.h"
#include "guard/retry_and_settle.h"
#include "pawl/redis.h"

namespace pawl::guard {

struct RedisOrder {
  HeldToken held;
  std::string resource;
  std::uint64_t operation = 0;  // 0: none
  RedisWords command;
};

class RedisWriter final : public RetryAndSettle {
 public:
  // `connect_again`: one try; whether it succeeded.
  RedisWriter(RedisCalls& calls, RedisOrder order, std::function<bool()> connect_again);

  // After run(): what the command has answered.
  [[nodiscard]] const RedisReply& reply() const { return reply_; }

 private:
  Attempt attempt() override;
  Settled settle() override;
  [[nodiscard]] std::string_view cannot_tell() const override;

  RedisCalls& calls_;
  const std::string resource_;
  const std::uint64_t operation_;
  const RedisWords command_;
  const std::function<bool()> connect_again_;
  RedisReply reply_;
};

// The decision in the answer of pawl_write.
[[nodiscard]] Result<Decision> to_decision(const RedisAnswer& answer, std::uint64_t token);

}  // namespace pawl::guard
