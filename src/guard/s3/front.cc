#include "guard/s3/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "guard/s3/names.h"
#include "guard/s3/probe.h"

namespace pawl::guard {
namespace {

constexpr int kReadTriesMax = 20;

Decision to_decision(const S3Verdict& verdict, std::uint64_t token, const S3Envelope& now) {
  return {.verdict = verdict.verdict,
          .token = token,
          .max = verdict.verdict == Verdict::kAdmitted ? std::max(verdict.max, token) : verdict.max,
          .mode = now.policy.mode,
          .let_through = verdict.let_through};
}

}  // namespace

S3Front::S3Front(Result<std::unique_ptr<ObjectStore>> store, S3Options options)
    : options_(std::move(options)) {
  if (!store) {
    error_ = store.error();
  } else {
    bucket_ = std::make_unique<S3Bucket>(*std::move(store));
  }
}

std::string S3Front::name() const {
  return bucket_ == nullptr ? "s3 bucket " + options_.bucket : bucket_->store().name();
}

Result<void> S3Front::verify() {
  refusal_.reset();
  unguarded_ = false;
  if (error_) return *error_;
  return bucket_->verify();
}

GuardStrength S3Front::strength() {
  const auto weak = [](std::string because) {
    return GuardStrength{Strength::kBestEffort, std::move(because)};
  };
  if (const auto ready = verify(); !ready) return weak(ready.error().detail);
  const auto probed = probe_s3(bucket_->store(), bucket_->new_nonce());
  if (!probed) return weak("it could not be probed: " + probed.error().detail);
  if (!probed->fatal.empty()) return weak(probed->fatal);
  if (probed->form != bucket_->form())
    return weak("the store takes ETags in another form than before: pawl guard install s3");
  const auto policy = bucket_->store().policy();
  if (!policy) return weak("the policy of the bucket cannot be read: " + policy.error().detail);
  if (!*policy || (*policy)->find("PawlGuardPut") == std::string::npos)
    return weak(
        "no bucket policy keeps others from writing around it: pawl guard protect s3 prints one");
  return {Strength::kFenced, ""};
}

Result<std::optional<S3Loaded>> S3Front::load(const std::string& key) {
  if (const auto ready = verify(); !ready) return ready.error();
  return bucket_->load(key);
}

Result<std::uint64_t> S3Front::advance(const std::string& key, std::uint64_t token) {
  if (const auto ready = verify(); !ready) return ready.error();
  if (token == 0 || token > limits::kTokenMax)
    return Error{Code::kInvalid, fmt::format("a token is from 1 to {}", limits::kTokenMax)};
  S3Verdict last;
  S3ChangeOrder order{.key = key};
  order.plan = [&](const S3Envelope& now) -> std::variant<S3Plan, Decision, Error> {
    last = judge_s3_token(now, token);
    // An advance counts in every mode, and refuses in every mode.
    if (last.verdict != Verdict::kAdmitted) return explain_s3_refusal(now, last, token, 0);
    const Decision done{.verdict = Verdict::kAdmitted, .token = token, .max = last.max};
    if (token <= now.token) return done;
    S3Plan plan{.next = now, .decision = done};
    plan.next.token = token;
    plan.next.operation.reset();
    return plan;
  };
  S3Change change(*bucket_, std::move(order));
  const auto done = change.execute();
  unguarded_ = change.unguarded();
  if (done) return done->max;
  if (last.verdict != Verdict::kAdmitted) refusal_ = last.verdict;
  return done.error();
}

Result<Decision> S3Front::check(const std::string& key, std::uint64_t token) {
  const auto now = load(key);
  if (!now) return now.error();
  unguarded_ = !*now;
  if (unguarded_) return not_under_s3_guard(key);
  const S3Envelope& envelope = (*now)->envelope;
  const S3Verdict verdict = judge_s3_token(envelope, token);
  return Decision{.verdict = verdict.verdict,
                  .token = token,
                  .max = verdict.max,
                  .mode = envelope.policy.mode,
                  .let_through = verdict.let_through};
}

Result<Decision> S3Front::write(const S3Write& write) {
  if (const auto ready = verify(); !ready) return ready.error();
  const std::uint64_t token = write.held.token;
  if (token > limits::kTokenMax || write.operation > limits::kTokenMax)
    return Error{Code::kInvalid,
                 fmt::format("tokens and operation numbers are from 1 to {}", limits::kTokenMax)};
  std::optional<S3Verdict> last;
  S3ChangeOrder order{.key = write.key, .held = write.held, .operation = write.operation};
  order.content = write.content;
  order.inline_max = options_.inline_max;
  order.plan = [&](const S3Envelope& now) -> std::variant<S3Plan, Decision, Error> {
    last = judge_s3_write(now, token, write.operation);
    if (last->verdict == Verdict::kReplayed) return to_decision(*last, token, now);
    if (!last->applies()) return explain_s3_refusal(now, *last, token, write.operation);
    S3Plan plan{.next = now, .decision = to_decision(*last, token, now)};
    plan.content = write.content ? S3Plan::Content::kReplace : S3Plan::Content::kRemove;
    if (last->verdict == Verdict::kAdmitted) raise_s3_fence(plan.next, token, write.operation);
    return plan;
  };
  S3Change change(*bucket_, std::move(order));
  const auto done = change.execute();
  unguarded_ = change.unguarded();
  const bool judged = last && last->verdict != Verdict::kAdmitted;
  const bool refused = judged && !done && !last->applies() && last->verdict != Verdict::kReplayed;
  if (refused) refusal_ = last->verdict;
  if (judged && (done || refused)) count(write.key, *last);
  return done;
}

// A counter that could not be written is no reason to hide the verdict.
void S3Front::count(const std::string& key, const S3Verdict& verdict) {
  static_cast<void>(bucket_->change_record(key, [&](S3Record& record) {
    switch (verdict.verdict) {
      case Verdict::kReplayed:
        ++record.replayed;
        break;
      case Verdict::kStale:
        ++record.stale;
        break;
      case Verdict::kMissing:
        ++record.missing;
        break;
      case Verdict::kAhead:
        ++record.ahead;
        break;
      case Verdict::kAdmitted:
        break;
    }
    if (verdict.would_refuse) ++record.would_refuse;
  }));
}

Result<std::optional<std::string>> S3Front::read(const std::string& key) {
  for (int tries = 0;; ++tries) {
    const auto now = load(key);
    if (!now) return now.error();
    unguarded_ = !*now;
    if (unguarded_) return not_under_s3_guard(key);
    auto content = bucket_->content((*now)->envelope);
    // Replaced while it was read: read what it was replaced with.
    if (content || content.error().code != Code::kUnavailable || tries >= kReadTriesMax)
      return content;
  }
}

}  // namespace pawl::guard
