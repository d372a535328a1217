#include "guard/etcd/rules.h"

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

// The smallest fence from which the token is not too far ahead. 0: the floor is close enough.
std::uint64_t least_fence(const EtcdPolicy& policy, std::uint64_t token) {
  return token - policy.floor > policy.max_step ? token - policy.max_step : 0;
}

EtcdRange range_to(const EtcdPolicy& policy, std::uint64_t token, std::string before,
                   std::optional<EtcdFence> store) {
  EtcdRange range{.before = std::move(before), .store = store};
  if (const std::uint64_t least = least_fence(policy, token); least > 0)
    range.after = end_of_fences_of(least - 1);
  return range;
}

}  // namespace

EtcdJudgement judge_token(const EtcdPolicy& policy, std::optional<std::uint64_t> token,
                          const EtcdFence& fence) {
  const std::uint64_t max = std::max(fence.token, policy.floor);
  if (!token) return {Verdict::kMissing, max};
  if (*token < max) return {Verdict::kStale, max};
  if (max > 0 && *token - max > policy.max_step) return {Verdict::kAhead, max};
  if (*token == fence.token) return {Verdict::kAdmitted, max};
  return {Verdict::kAdmitted, max, EtcdFence{*token, {}}};
}

EtcdJudgement judge_write(const EtcdPolicy& policy, const EtcdClaim& claim,
                          const EtcdFence& fence) {
  EtcdJudgement found = judge_token(policy, claim.token, fence);
  if (found.verdict != Verdict::kAdmitted) return found;
  const EtcdFence written{*claim.token, claim.operation.value_or(0)};
  found.store = written;
  if (*claim.token > fence.token) return found;
  if (claim.operation) {
    if (fence.operation == claim.operation) return {Verdict::kReplayed, found.max};
    if (fence.operation && *claim.operation < *fence.operation) return {Verdict::kStale, found.max};
    return found;
  }
  if (policy.equal == EtcdEqual::kAccept) return {Verdict::kAdmitted, found.max};
  if (fence.operation)
    return {policy.equal == EtcdEqual::kOnce ? Verdict::kMissing : Verdict::kStale, found.max};
  return found;
}

bool enforces(const EtcdPolicy& policy, std::string_view resource) {
  if (policy.mode != GuardMode::kCanary) return policy.mode == GuardMode::kEnforce;
  return fnv1a(resource) % 100 < policy.percent;
}

bool is_refusable(const EtcdPolicy& policy, const EtcdClaim& claim, Verdict verdict) {
  return verdict != Verdict::kMissing || claim.token || policy.require_token;
}

std::optional<EtcdRange> range_of_admission(const EtcdPolicy& policy, const EtcdClaim& claim,
                                            std::optional<std::uint64_t> known) {
  if (!claim.token || *claim.token < policy.floor) return std::nullopt;
  const std::uint64_t token = *claim.token;
  const EtcdFence written{token, claim.operation.value_or(0)};
  // Below its own text: an older token, only advanced to, or a smaller operation.
  if (claim.operation || policy.equal != EtcdEqual::kAccept)
    return range_to(policy, token, to_text(written), written);
  // A holder that writes again leaves the fence alone: an operation number may be in it.
  if (known == token) return EtcdRange{end_of_fences_of(token - 1), first_fence_of(token + 1), {}};
  return range_to(policy, token, first_fence_of(token), written);
}

std::optional<EtcdRange> range_of_advance(const EtcdPolicy& policy, std::uint64_t token) {
  if (token < policy.floor) return std::nullopt;
  return range_to(policy, token, first_fence_of(token), EtcdFence{token, {}});
}

std::string explain_refusal(Verdict verdict, std::string_view resource, const EtcdClaim& claim,
                            std::uint64_t max, const EtcdPolicy& policy) {
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
