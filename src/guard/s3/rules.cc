#include "guard/s3/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "aws/sigv4.h"
#include "base/limits.h"

namespace pawl::guard {
namespace {

constexpr std::uint64_t kStepMin = std::uint64_t{1} << 41;

// A stable hash of the key chooses the canaries.
bool enforces(const S3Envelope& now) {
  if (now.policy.mode != GuardMode::kCanary) return now.policy.mode == GuardMode::kEnforce;
  const std::string digits = aws::sha256_hex(now.key).substr(0, 8);
  std::uint32_t hash = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  return static_cast<int>(hash % 100) < now.policy.percent;
}

Verdict compare(const S3Envelope& now, std::uint64_t token, std::uint64_t max) {
  if (token == 0) return Verdict::kMissing;
  if (token < max) return Verdict::kStale;
  if (max > 0 && token - max > now.policy.max_step) return Verdict::kAhead;
  return Verdict::kAdmitted;
}

// Of a token that is as great as the fence.
Verdict compare_equal(const S3Envelope& now, std::uint64_t operation) {
  if (operation != 0) {
    if (operation == now.operation) return Verdict::kReplayed;
    return now.operation && operation < *now.operation ? Verdict::kStale : Verdict::kAdmitted;
  }
  if (now.policy.equal == Equal::kAccept || !now.operation) return Verdict::kAdmitted;
  return now.policy.equal == Equal::kOnce ? Verdict::kMissing : Verdict::kStale;
}

S3Verdict in_mode(const S3Envelope& now, Verdict verdict, std::uint64_t token, std::uint64_t max) {
  S3Verdict judged{.verdict = verdict, .max = max};
  if (verdict == Verdict::kAdmitted || verdict == Verdict::kReplayed) return judged;
  const bool wrong = verdict != Verdict::kMissing || token != 0 || now.policy.require_token;
  judged.let_through = !wrong || !enforces(now);
  judged.would_refuse = wrong && judged.let_through && now.policy.mode != GuardMode::kObserve;
  return judged;
}

}  // namespace

S3Verdict judge_s3_token(const S3Envelope& now, std::uint64_t token) {
  const std::uint64_t max = std::max(now.token, now.policy.floor);
  return in_mode(now, compare(now, token, max), token, max);
}

S3Verdict judge_s3_write(const S3Envelope& now, std::uint64_t token, std::uint64_t operation) {
  const std::uint64_t max = std::max(now.token, now.policy.floor);
  Verdict verdict = compare(now, token, max);
  if (verdict == Verdict::kAdmitted && token == now.token) verdict = compare_equal(now, operation);
  return in_mode(now, verdict, token, max);
}

void raise_s3_fence(S3Envelope& next, std::uint64_t token, std::uint64_t operation) {
  // The last number stays when the same token writes without one.
  if (token > next.token || operation != 0 || !next.operation) next.operation = operation;
  next.token = std::max(next.token, token);
}

Error explain_s3_refusal(const S3Envelope& now, const S3Verdict& verdict, std::uint64_t token,
                         std::uint64_t operation) {
  const std::string given = token == 0 ? "none" : std::to_string(token);
  const std::string numbers = fmt::format(" [resource={} token={} max={} mode={}]", now.key, given,
                                          verdict.max, to_text(now.policy.mode));
  const auto stale = [&](std::string text) { return Error{Code::kStaleToken, text + numbers}; };
  const auto other = [&](std::string text) { return Error{Code::kInvalid, text + numbers}; };
  switch (verdict.verdict) {
    case Verdict::kMissing:
      return other(token == 0 ? fmt::format("write to {} without a token", now.key)
                              : fmt::format("token {} was used for {} before, and is admitted "
                                            "again only with an operation number",
                                            given, now.key));
    case Verdict::kAhead:
      return other(fmt::format(
          "token {} for {} is further ahead of {} than the guard allows: forged or corrupt", given,
          now.key, verdict.max));
    default:
      break;
  }
  if (token < verdict.max)
    return stale(fmt::format(
        "stale token {} for {}: token {} has been here. Stop; a retry cannot succeed. A newer "
        "holder has taken over, or a holder of another lock writes here: one guarded resource "
        "needs one lock. If pawld still grants tokens below {}, run: pawl raise {} --reason TEXT",
        given, now.key, verdict.max, verdict.max, verdict.max));
  if (operation != 0)
    return stale(fmt::format(
        "stale operation {} under token {} for {}: a later one was done, and only the last is "
        "remembered",
        operation, given, now.key));
  return stale(fmt::format(
      "stale token {} for {}: it has been here. Stop; a retry cannot succeed. The policy of this "
      "guard admits each token once",
      given, now.key));
}

Result<void> check_s3_max_step(std::uint64_t max_step) {
  if (max_step >= kStepMin && max_step <= limits::kTokenMax) return {};
  return Error{Code::kInvalid,
               fmt::format("max_step is from {} to {}", kStepMin, limits::kTokenMax)};
}

}  // namespace pawl::guard
