#include "guard/dynamodb/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::guard {
namespace {

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 16777619u;
  }
  return hash;
}

// As far as the greatest step allows.
DynamoTest test_below(const DynamoPolicy& policy, std::uint64_t token) {
  DynamoTest test{.token = token};
  const bool far = token - policy.floor > policy.max_step;
  if (far) test.least = token - policy.max_step;
  test.or_none = policy.floor == 0 || !far;
  return test;
}

}  // namespace

DynamoJudgement judge_dynamo_token(const DynamoPolicy& policy, std::optional<std::uint64_t> token,
                                   const DynamoFence& fence) {
  const std::uint64_t max = std::max(fence.token, policy.floor);
  if (!token) return {Verdict::kMissing, max};
  if (*token < max) return {Verdict::kStale, max};
  if (max > 0 && *token - max > policy.max_step) return {Verdict::kAhead, max};
  if (*token == fence.token) return {Verdict::kAdmitted, max};
  return {Verdict::kAdmitted, max, DynamoFence{*token, {}}};
}

DynamoJudgement judge_dynamo_write(const DynamoPolicy& policy, const DynamoClaim& claim,
                                   const DynamoFence& fence) {
  DynamoJudgement found = judge_dynamo_token(policy, claim.token, fence);
  if (found.verdict != Verdict::kAdmitted) return found;
  const DynamoFence written{*claim.token, claim.operation.value_or(0)};
  found.store = written;
  if (*claim.token > fence.token) return found;
  if (claim.operation) {
    if (fence.operation == claim.operation) return {Verdict::kReplayed, found.max};
    if (fence.operation && *claim.operation < *fence.operation) return {Verdict::kStale, found.max};
    return found;
  }
  if (!fence.operation) return found;
  if (policy.equal == Equal::kAccept) return {Verdict::kAdmitted, found.max};
  return {policy.equal == Equal::kOnce ? Verdict::kMissing : Verdict::kStale, found.max};
}

bool enforces(const DynamoPolicy& policy, std::string_view resource) {
  if (policy.mode != GuardMode::kCanary) return policy.mode == GuardMode::kEnforce;
  return fnv1a(resource) % 100 < policy.percent;
}

bool is_refusable(const DynamoPolicy& policy, const DynamoClaim& claim, Verdict verdict) {
  return verdict != Verdict::kMissing || claim.token || policy.require_token;
}

bool holds(const DynamoTest& test, const DynamoFence& fence) {
  if (test.exact) return *test.exact == fence;
  if (fence.token == 0) return test.or_none;
  if (fence.token < test.token) return fence.token >= test.least;
  return fence.token == test.token && (!fence.operation || *fence.operation < test.operation);
}

std::optional<DynamoAdmission> find_admission(const DynamoPolicy& policy, const DynamoClaim& claim,
                                              const std::optional<DynamoFence>& known) {
  if (!claim.token || *claim.token < policy.floor) return std::nullopt;
  const std::uint64_t token = *claim.token;
  // A holder that writes again without a number leaves the one there is.
  if (known && known->token == token && known->operation && !claim.operation &&
      policy.equal == Equal::kAccept)
    return DynamoAdmission{{.token = token, .exact = *known}, {token, known->operation}};
  DynamoAdmission admission{test_below(policy, token), {token, claim.operation.value_or(0)}};
  admission.test.operation = claim.operation.value_or(0);
  return admission;
}

std::optional<DynamoAdmission> find_advance(const DynamoPolicy& policy, std::uint64_t token) {
  if (token < policy.floor) return std::nullopt;
  return DynamoAdmission{test_below(policy, token), {token, {}}};
}

std::string explain_dynamo_refusal(Verdict verdict, std::string_view resource,
                                   const DynamoClaim& claim, std::uint64_t max,
                                   const DynamoPolicy& policy) {
  const std::string given = claim.token ? std::to_string(*claim.token) : "none";
  const std::string numbers = fmt::format(" [resource={} token={} max={} mode={}]", resource, given,
                                          max, to_text(policy.mode));
  if (verdict == Verdict::kAhead)
    return fmt::format(
               "token {} for {} is further ahead of {} than the guard allows: forged or corrupt",
               given, resource, max) +
           numbers;
  if (verdict == Verdict::kMissing && claim.token)
    return fmt::format(
               "token {} was used for {} before, and is admitted again only with an operation "
               "number",
               given, resource) +
           numbers;
  if (verdict == Verdict::kMissing)
    return fmt::format("write to {} without a token", resource) + numbers;
  if (*claim.token < max)
    return fmt::format(
               "stale token {} for {}: token {} has been here. Stop; a retry cannot succeed. A "
               "newer holder has taken over, or a holder of another lock writes here: one guarded "
               "resource needs one lock. If pawld still grants tokens below {}, run: pawl raise {} "
               "--reason TEXT",
               given, resource, max, max, max) +
           numbers;
  if (claim.operation)
    return fmt::format(
               "stale operation {} under token {} for {}: a later one was done, and only the last "
               "is remembered",
               *claim.operation, given, resource) +
           numbers;
  return fmt::format(
             "stale token {} for {}: it has been here. Stop; a retry cannot succeed. The policy of "
             "this guard admits each token once",
             given, resource) +
         numbers;
}

}  // namespace pawl::guard
