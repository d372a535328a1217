// The rules of a guard in etcd: what its policy and a fence say to a token. Pure. etcd itself only
// compares; what is judged here holds because the transaction compares the very texts that were
// judged, or a range of fences in which the verdict is the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/etcd/policy.h"
#include "pawl/guard.h"

namespace pawl::guard {

struct EtcdJudgement {
  Verdict verdict = Verdict::kMissing;
  std::uint64_t max = 0;                // the fence, or the floor if that is greater
  std::optional<EtcdFence> store = {};  // admitted: what the fence becomes; nothing: as it is
};

// What is asked of a resource.
struct EtcdClaim {
  std::optional<std::uint64_t> token = {};
  std::optional<std::uint64_t> operation = {};
};

// The numbers alone: as advance and check see them.
[[nodiscard]] EtcdJudgement judge_token(const EtcdPolicy& policy,
                                        std::optional<std::uint64_t> token, const EtcdFence& fence);
// With the operation number and the policy `equal`, as a write.
[[nodiscard]] EtcdJudgement judge_write(const EtcdPolicy& policy, const EtcdClaim& claim,
                                        const EtcdFence& fence);

// Whether the mode refuses for this resource (GUARD or GUARD:KEY). Canary: the FNV-1a hash of its
// name, of 32 bits, modulo 100 is below the percentage.
[[nodiscard]] bool enforces(const EtcdPolicy& policy, std::string_view resource);
// Whether enforce refuses this verdict: a write without a token passes unless one is required.
[[nodiscard]] bool is_refusable(const EtcdPolicy& policy, const EtcdClaim& claim, Verdict verdict);

// A fence in a range of texts: after `after` (if it is not empty) and before `before`. Whatever it
// is there, the claim is admitted, and `store` becomes the fence (nothing: it stays).
struct EtcdRange {
  std::string after = {};
  std::string before;
  std::optional<EtcdFence> store = {};
};
// Nothing: there is no such range. `known`: the token that the fence is thought to have.
[[nodiscard]] std::optional<EtcdRange> range_of_admission(const EtcdPolicy& policy,
                                                          const EtcdClaim& claim,
                                                          std::optional<std::uint64_t> known);
// The same for an advance; only where the fence rises.
[[nodiscard]] std::optional<EtcdRange> range_of_advance(const EtcdPolicy& policy,
                                                        std::uint64_t token);

// For people, with the numbers in brackets at its end, which parse_field() reads.
[[nodiscard]] std::string explain_refusal(Verdict verdict, std::string_view resource,
                                          const EtcdClaim& claim, std::uint64_t max,
                                          const EtcdPolicy& policy);

}  // namespace pawl::guard
