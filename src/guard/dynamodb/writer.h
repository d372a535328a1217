// One guarded write to DynamoDB, tried until its outcome is known. What each end means is in
// pawl/dynamodb.h.
#pragma once

#include "guard/dynamodb/calls.h"
#include "guard/retry_and_settle.h"

namespace pawl::guard {

class DynamoWriter final : public RetryAndSettle {
 public:
  // `order` without a token and a nonce: the token is that of `held`.
  DynamoWriter(DynamoCalls& calls, HeldToken held, DynamoOrder order);

  // After run(): whether the conditions of the caller were met.
  [[nodiscard]] bool met() const { return met_; }

 private:
  Attempt attempt() override;
  Settled settle() override;
  [[nodiscard]] std::string_view cannot_tell() const override;

  DynamoCalls& calls_;
  DynamoOrder order_;
  const std::chrono::steady_clock::time_point give_up_;
  bool met_ = true;
  bool paused_ = true;  // before the next repetition
};

// A refusal that is no verdict on the token is the caller's mistake.
[[nodiscard]] Error to_error(const DynamoVerdict& refusal);
[[nodiscard]] Decision to_decision(const DynamoVerdict& answer, std::uint64_t token);

}  // namespace pawl::guard
