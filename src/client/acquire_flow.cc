#include "client/acquire_flow.h"

#include <algorithm>

#include "base/lease_terms.h"
#include "base/limits.h"
#include "base/mutants.h"
#include "wire/command_writer.h"

namespace pawl::client {
namespace {

// A confirmation that arrives after its own deadline is repeated, but not for ever: where answers
// always take longer than the TTL, no lease can be held.
constexpr int kConfirmationsMax = 3;

// Two connections with one request id would otherwise take the wait from each other for ever.
constexpr int kSupersededMax = 3;

AcquireSpec to_spec(const AcquireCall& call) {
  AcquireSpec spec;
  for (const std::string& lock : call.locks) spec.locks.push_back(lock);
  for (const auto& [key, value] : call.meta) spec.meta.push_back({key, value});
  spec.terms = call.terms;
  spec.owner = call.owner;
  spec.request = call.request;
  return spec;
}

}  // namespace

std::optional<Error> AcquireFlow::check(const AcquireCall& call) {
  if (call.locks.empty() || call.locks.size() > limits::kLocksPerLease) {
    return Error{Code::kInvalid,
                 "a lease takes 1 to " + std::to_string(limits::kLocksPerLease) + " locks"};
  }
  if (call.meta.size() > limits::kMetaPairs) {
    return Error{Code::kInvalid,
                 "a lease carries at most " + std::to_string(limits::kMetaPairs) + " META pairs"};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AcquireFlow::position() const {
  if (step_ != Step::kWait || unwanted_) return std::nullopt;
  return position_;
}

void AcquireFlow::append(std::string& out, Instant now) {
  switch (step_) {
    case Step::kAsk:
      return append_ask(out, now);
    case Step::kConfirm:
      sent_ = now;
      return wire::append_renew(out, grant_->lease);
    case Step::kGiveBack:
      return wire::append_release(out, grant_->lease);
    case Step::kWithdraw:
      return wire::append_cancel(out, call_.request);
    case Step::kWait:
      break;
  }
  PAWL_ASSERT(false && "a waiting acquire sends nothing");
}

void AcquireFlow::append_ask(std::string& out, Instant now) {
  if (!first_sent_ || PAWL_MUTANT(deadline_from_retry)) first_sent_ = now;
  AcquireSpec spec = to_spec(call_);
  // A retry waits for the rest of the caller's wait, not for all of it again.
  const auto left = std::chrono::ceil<Millis>(*first_sent_ + call_.wait - now);
  if (!unwanted_ && left > Millis(0)) {
    spec.wait = std::min(left, limits::kWaitMax);  // Then it is queued again.
    spec.async = true;  // The connection stays free, for renewals and for CANCEL.
  }
  wire::append_acquire(out, spec);
}

void AcquireFlow::on_reply(const wire::Value& value, Instant now) {
  switch (step_) {
    case Step::kAsk:
      return asked(value, now);
    case Step::kConfirm:
      return confirmed(value, now);
    case Step::kGiveBack:
      return finish();  // 1, 0 or an error: the lease is not renewed any more.
    case Step::kWithdraw:
      return withdrawn(value);
    case Step::kWait:
      break;
  }
  PAWL_ASSERT(false && "a waiting acquire expects no reply");
}

void AcquireFlow::asked(const wire::Value& value, Instant now) {
  const auto reply = wire::read_acquire(value);
  if (!reply) return finish_with(failure(reply.error()));
  if (const auto* grant = std::get_if<wire::GrantReply>(&*reply)) return granted(*grant, now);
  if (const auto* queued = std::get_if<wire::QueuedReply>(&*reply)) {
    if (unwanted_) return go(Step::kWithdraw);
    position_ = queued->position;
    step_ = Step::kWait;
    return park();
  }
  finish_with(failure({Code::kBusy, "someone else holds it"}));
}

void AcquireFlow::on_push(const wire::WaitPush& push, Instant now) {
  if (step_ == Step::kWithdraw && push.grant)
    grant_ = push.grant;  // The answer to CANCEL will be 0.
  if (step_ != Step::kWait)
    return;  // An answer to an earlier send; the reply we wait for says the same or newer.
  switch (push.event) {
    case wire::WaitEvent::kGranted:
      if (push.grant) return granted(*push.grant, now);
      return go(Step::kAsk);  // Granted, but unreadable: the same request id returns it.
    case wire::WaitEvent::kTimeout:
      if (now < *first_sent_ + call_.wait && call_.wait > limits::kWaitMax) return go(Step::kAsk);
      return finish_with(failure({Code::kBusy, "someone else held it until the wait was over"}));
    case wire::WaitEvent::kCancelled:
      return finish_with(failure({Code::kUnavailable, "the wait was cancelled"}));
    case wire::WaitEvent::kSuperseded:
      // Another connection used our request id. The same id gives us the wait back, or the grant.
      if (++superseded_ <= kSupersededMax) return go(Step::kAsk);
      return finish_with(failure(
          {Code::kUnknown, "another connection uses the same request id and gets the answer"}));
  }
}

void AcquireFlow::granted(const wire::GrantReply& grant, Instant now) {
  grant_ = grant;
  if (unwanted_) return go(Step::kGiveBack);
  const Instant until = deadline(AcquireTiming{
      PAWL_MUTANT(deadline_from_reply) ? now : *first_sent_, grant.waited, grant.ttl});
  if (has_half_ttl_left(until, grant.ttl, now)) return hand_out(until);
  go(Step::kConfirm);
}

void AcquireFlow::confirmed(const wire::Value& value, Instant now) {
  if (unwanted_) return go(Step::kGiveBack);
  const auto answered = wire::read_integer(value);
  if (!answered) {
    const std::string granted_as =
        "granted as token " + std::to_string(grant_->token.value) + ", but ";
    return give_back(
        {answered.error().code, granted_as + "not confirmed: " + answered.error().detail}, now);
  }
  const Instant until = deadline(RenewTiming{sent_, Millis(*answered), grant_->ttl});
  if (now < until) return hand_out(until);
  if (++confirmations_ < kConfirmationsMax) return go(Step::kConfirm);
  give_back({Code::kUnavailable, "answers take longer than the TTL; choose a longer TTL"}, now);
}

void AcquireFlow::hand_out(Instant deadline) {
  finish_with(Result<GrantedLease>(GrantedLease{*grant_, deadline, call_.request}));
}

void AcquireFlow::withdrawn(const wire::Value& value) {
  if (grant_) return go(Step::kGiveBack);
  const auto cancelled = wire::read_integer(value);
  if (!cancelled || *cancelled == 1) return finish();
  go(Step::kAsk);  // It was not waiting any more: a grant may stand. Ask for it, to give it back.
}

// The same step again. The hang-up has ended the wait, and a grant made just before stands for the
// retry.
void AcquireFlow::resume_after_disconnect(Instant) {
  go(step_ == Step::kWait ? Step::kAsk : step_);
}

void AcquireFlow::give_back(Error why, Instant now) {
  complete(failure(std::move(why)));
  unwanted_ = true;
  linger(now + call_.terms.ttl * 2);
  go(Step::kGiveBack);
}

void AcquireFlow::cancel(Instant now) {
  leave({Code::kUnavailable, "cancelled"}, now);
}

void AcquireFlow::abandon(Instant now, std::string_view connection_error) {
  const std::string why = failure_reason(connection_error);
  if (!may_have_happened()) return leave({Code::kUnavailable, why}, now);
  leave({Code::kUnknown, why + "; if it was granted, it ends by itself after its TTL"}, now);
}

void AcquireFlow::leave(Error why, Instant now) {
  complete(failure(std::move(why)));
  unwanted_ = true;
  if (!may_have_happened()) return finish();
  // After this a grant has expired, because it was not renewed.
  linger(now + call_.terms.ttl * 2);
  if (state() == State::kSent) return;  // Its reply says what is left to do.
  if (step_ == Step::kWait) return go(Step::kWithdraw);
  if (step_ == Step::kConfirm) return go(Step::kGiveBack);
}

}  // namespace pawl::client
