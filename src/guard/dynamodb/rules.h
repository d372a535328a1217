// The rules of a guard in DynamoDB: what its policy and a fence say to a token. Pure. DynamoDB
// itself only compares; what is judged here holds because the write is on the condition that the
// fence is still in a range in which the verdict is the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/dynamodb/policy.h"
#include "pawl/guard.h"

namespace pawl::guard {

struct DynamoJudgement {
  Verdict verdict = Verdict::kMissing;
  std::uint64_t max = 0;                  // the fence, or the floor if that is greater
  std::optional<DynamoFence> store = {};  // admitted: what the fence becomes; nothing: as it is
};

// What is asked of a resource.
struct DynamoClaim {
  std::optional<std::uint64_t> token = {};
  std::optional<std::uint64_t> operation = {};
};

// The numbers alone: as advance and check see them.
[[nodiscard]] DynamoJudgement judge_dynamo_token(const DynamoPolicy& policy,
                                                 std::optional<std::uint64_t> token,
                                                 const DynamoFence& fence);
// With the operation number and the policy `equal`, as a write.
[[nodiscard]] DynamoJudgement judge_dynamo_write(const DynamoPolicy& policy,
                                                 const DynamoClaim& claim,
                                                 const DynamoFence& fence);

// Whether the mode refuses for this resource (GUARD or GUARD:KEY). Canary: the FNV-1a hash of its
// name, of 32 bits, modulo 100 is below the percentage.
[[nodiscard]] bool enforces(const DynamoPolicy& policy, std::string_view resource);
// Whether enforce refuses this verdict: a write without a token passes unless one is required.
[[nodiscard]] bool is_refusable(const DynamoPolicy& policy, const DynamoClaim& claim,
                                Verdict verdict);

// What a fence is compared with. It holds where
//   the token of the fence is from `least` to `token` − 1, or there is none and `or_none`;
//   or it is `token`, and the operation is below `operation`, or there was none.
// With `exact` it holds for this very fence alone, also its nonce. So no test holds any more once a
// write with it has landed, and of several copies of a request one can land at most.
struct DynamoTest {
  std::uint64_t token = 0;
  std::uint64_t least = 0;
  std::uint64_t operation = 0;
  bool or_none = true;
  std::optional<DynamoFence> exact = {};
};
[[nodiscard]] bool holds(const DynamoTest& test, const DynamoFence& fence);

// The widest test under which the claim is admitted, and what the fence becomes then. `known`: what
// the fence is thought to be. Nothing: it is never admitted.
struct DynamoAdmission {
  DynamoTest test;
  DynamoFence store;
};
[[nodiscard]] std::optional<DynamoAdmission> find_admission(
    const DynamoPolicy& policy, const DynamoClaim& claim, const std::optional<DynamoFence>& known);
// The same for an advance; only where the fence rises.
[[nodiscard]] std::optional<DynamoAdmission> find_advance(const DynamoPolicy& policy,
                                                          std::uint64_t token);

// For people, with the numbers in brackets at its end, which parse_field() reads.
[[nodiscard]] std::string explain_dynamo_refusal(Verdict verdict, std::string_view resource,
                                                 const DynamoClaim& claim, std::uint64_t max,
                                                 const DynamoPolicy& policy);

}  // namespace pawl::guard
