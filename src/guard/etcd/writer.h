// One guarded write to etcd, tried until its outcome is known. What each end means is in
// pawl/etcd.h.
#pragma once

#include "guard/etcd/calls.h"
#include "guard/retry_and_settle.h"
#include "pawl/etcd.h"

namespace pawl::guard {

class EtcdWriter final : public RetryAndSettle {
 public:
  // `order` without a token: it is that of `held`. An unknown outcome is settled for `time_limit`.
  EtcdWriter(EtcdCalls& calls, HeldToken held, EtcdOrder order,
             std::chrono::milliseconds time_limit);

  // After run(): whether the conditions of the caller were met.
  [[nodiscard]] bool met() const { return met_; }

 private:
  Attempt attempt() override;
  Settled settle() override;
  [[nodiscard]] std::string_view cannot_tell() const override;

  EtcdCalls& calls_;
  EtcdOrder order_;
  bool met_ = true;
};

// A refusal that is no verdict on the token is the caller's mistake.
[[nodiscard]] Error to_error(const EtcdAnswer& refusal);
[[nodiscard]] Decision to_decision(const EtcdAnswer& answer, std::uint64_t token);

}  // namespace pawl::guard
