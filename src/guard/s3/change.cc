#include "guard/s3/change.h"

#include <fmt/format.h>

#include <utility>

#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

// Of attempts that other writers got in the way of; a lease may end it sooner.
constexpr std::chrono::seconds kGiveUp{60};
constexpr int kAtOnceMax = 16;

RetryLimits change_limits() {
  return {.until = std::chrono::steady_clock::now() + kGiveUp};
}

}  // namespace

Error not_under_s3_guard(std::string_view key) {
  return {Code::kInvalid, fmt::format("unknown resource '{}': put it under guard with pawl guard "
                                      "protect s3, or find out how its guard was lost",
                                      key)};
}

S3Change::S3Change(S3Bucket& bucket, S3ChangeOrder order)
    : RetryAndSettle(order.held, change_limits()), bucket_(bucket), order_(std::move(order)) {}

Result<Decision> S3Change::execute() {
  const auto decision = run();
  if (decision && landed_) return planned_;
  return decision;
}

// A writer that is overtaken has just read back what is there now, and that is its best chance to
// come before the next one: it tries again at once some times. After a pause it would be old.
RetryAndSettle::Attempt S3Change::attempt() {
  for (int tries = 1;; ++tries) {
    overtaken_ = false;
    Attempt end = try_once();
    if (!overtaken_) return end;
    if (tries == kAtOnceMax) {
      bucket_.forget(order_.key);
      return end;
    }
    if (auto held = check_held(); !held) return unless_unsettled(held.error());
  }
}

RetryAndSettle::Attempt S3Change::try_once() {
  auto now = bucket_.remembered(order_.key);
  while (true) {
    const bool fresh = !now;
    if (fresh) {
      auto loaded = bucket_.load(order_.key);
      if (!loaded) return failed(loaded.error());
      unguarded_ = !*loaded;
      if (unguarded_) return unless_unsettled(not_under_s3_guard(order_.key));
      now = *std::move(loaded);
    }
    auto end = order_.plan(now->envelope);
    if (auto* plan = std::get_if<S3Plan>(&end)) return replace(*now, std::move(*plan));
    if (!fresh) {  // The mode, or all of it, may have changed since: only what is there now refuses.
      now.reset();
      continue;
    }
    if (const auto* decision = std::get_if<Decision>(&end)) return *decision;
    const Error& error = std::get<Error>(end);
    if (error.code == Code::kStaleToken)
      return explain_stale(error, parse_field(error.detail, "max"));
    return unless_unsettled(error);
  }
}

// Reading, or an upload that nothing refers to yet: whatever happened, nothing has changed.
RetryAndSettle::Attempt S3Change::failed(const Error& error) {
  if (error.code == Code::kUnknown || error.code == Code::kUnavailable)
    return Again{{Code::kUnavailable, error.detail}};
  return unless_unsettled(error);
}

RetryAndSettle::Attempt S3Change::replace(const S3Loaded& now, S3Plan plan) {
  S3Envelope next = next_after(now.envelope, bucket_.new_nonce());
  next.token = plan.next.token;
  next.operation = plan.next.operation;
  next.policy = plan.next.policy;
  if (plan.content == S3Plan::Content::kRemove) next.content = {};
  if (plan.content == S3Plan::Content::kReplace) {
    const auto before = bucket_.content(now.envelope);
    if (!before) {
      bucket_.forget(order_.key);
      return failed(before.error());
    }
    auto placed = bucket_.place(next, order_.content(*before), order_.inline_max);
    if (!placed) return failed(placed.error());
    next.content = *std::move(placed);
  }
  sent_ = {order_.key, now.etag, std::move(next)};
  planned_ = plan.decision;
  return send();
}

RetryAndSettle::Attempt S3Change::send() {
  // The upload may have taken long.
  if (auto held = check_held(); !held) return unless_unsettled(held.error());
  const auto answer = bucket_.replace(sent_);
  if (answer && !answer->refused) {
    landed_ = true;
    return planned_;
  }
  if (!answer && answer.error().code != Code::kUnknown) return failed(answer.error());
  const Error error =
      answer ? Error{Code::kUnavailable, "other writers came in between"} : answer.error();
  const auto landing = read_back();
  // Refused, and sent once: it has not landed, however much has happened since.
  const bool refused_once = answer && !answer->perhaps_repeated;
  if (refused_once && (!landing || *landing == S3Landing::kCannotTell)) {
    overtaken_ = landing.has_value();
    return Again{{Code::kUnavailable, error.detail}};
  }
  if (!landing || *landing == S3Landing::kCannotTell) return Unknown{error};
  if (*landing == S3Landing::kApplied) {
    landed_ = true;
    return planned_;
  }
  if (*landing == S3Landing::kUnchanged && !answer) return Unknown{error};
  overtaken_ = *landing == S3Landing::kSuperseded;
  return Again{{Code::kUnavailable, error.detail}};
}

Result<S3Landing> S3Change::read_back() {
  const auto now = bucket_.load(order_.key);
  if (!now) return now.error();
  return find_landing(sent_, *now);
}

RetryAndSettle::Settled S3Change::settle() {
  const auto landing = read_back();
  if (!landing) return Settled::kNotYet;
  switch (*landing) {
    case S3Landing::kApplied:
      landed_ = true;
      return Settled::kApplied;
    case S3Landing::kSuperseded:
      return Settled::kNotApplied;
    case S3Landing::kCannotTell:
      return order_.operation == 0 ? Settled::kCannotTell : Settled::kRepeat;
    case S3Landing::kUnchanged:
      break;
  }
  const auto answer = bucket_.replace(sent_);
  if (!answer || answer->refused) return Settled::kNotYet;
  landed_ = true;
  return Settled::kApplied;
}

std::string_view S3Change::cannot_tell() const {
  return "whether the write was in effect is unknown: others have replaced it since, or the object "
         "was made anew; with an operation number it could be found out";
}

}  // namespace pawl::guard
