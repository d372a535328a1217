#include "cli/run_plan.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

using client::kNever;

constexpr std::uint64_t kJitterPercent = 15;
constexpr Millis kRetryMin{50};

Instant after(Instant from, Millis span) {
  return span >= kNever - from ? kNever : from + span;
}

}  // namespace

WaitPlan::WaitPlan(std::optional<Millis> patience, Instant now)
    : end_(patience ? after(now, *patience) : kNever) {}

Millis WaitPlan::next_wait(Instant now) const {
  if (end_ == kNever) return limits::kWaitMax;
  const auto left = std::chrono::ceil<Millis>(end_ - now);
  return std::clamp(left, Millis(0), limits::kWaitMax);
}

// A lease can be lost before it was ever handed out: who was frozen in the queue for longer than
// the TTL asks anew.
bool WaitPlan::again(Code code, Instant now) const {
  return (code == Code::kBusy || code == Code::kLeaseLost) && now < end_;
}

Millis kill_gap(Millis ttl) {
  return std::max(Millis(100), ttl / 20);
}

RunPlan::RunPlan(const RunTimes& times, Instant deadline, Instant now, Random& random)
    : times_(times), random_(random), deadline_(deadline) {
  if (times.max_hold > Millis(0)) hold_end_ = after(now, times.max_hold);
  plan_renewal(now);
}

RunPlan::Limit RunPlan::limit() const {
  if (lost_ignored_) return {hold_end_, Why::kMaxHold};
  if (capped_ || hold_end_ <= deadline_) return {std::min(deadline_, hold_end_), Why::kMaxHold};
  return {deadline_, Why::kLost};
}

bool RunPlan::gently(Why why) const {
  return why == Why::kMaxHold || times_.on_lost == OnLost::kStop;
}

// When the limit asks for the first thing to be done.
Instant RunPlan::acts_at(const Limit& end) const {
  if (end.at == kNever) return kNever;
  if (end.why == Why::kLost && ignores_loss()) return end.at;
  const Millis gap = kill_gap(times_.ttl);
  return end.at - (gently(end.why) ? std::max(times_.kill_after, gap) : gap);
}

RunPlan::Due RunPlan::advance(Instant now) {
  const Limit end = limit();
  if (!over_ && now >= acts_at(end)) {
    if (end.why == Why::kLost && ignores_loss()) {
      ignore_loss();
    } else {
      stop(end.why, end.at - kill_gap(times_.ttl), gently(end.why));
    }
  }
  Due due;
  if (!killed_ && now >= kill_at_) due.kill = killed_ = true;
  due.terminate = std::exchange(terminate_due_, false) && !due.kill;
  if (renews() && !renewing_ && now >= renew_at_) due.renew = renewing_ = true;
  return due;
}

Instant RunPlan::next_timer() const {
  if (terminate_due_) return Instant{};
  if (stopping()) return killed_ ? kNever : kill_at_;
  if (over_) return kNever;
  const Instant next = acts_at(limit());
  return renews() && !renewing_ ? std::min(next, renew_at_) : next;
}

void RunPlan::renewed(Instant deadline, Millis expires_in, Instant now) {
  renewing_ = false;
  if (!renews()) return;
  // Never back: an answer to an earlier send says nothing against a later one.
  deadline_ = std::max(deadline_, deadline);
  capped_ = times_.max_hold > Millis(0) && expires_in < times_.ttl;
  plan_renewal(now);
}

void RunPlan::renewal_failed(Code code, Instant now) {
  renewing_ = false;
  if (!renews()) return;
  if (code != Code::kLeaseLost) {  // Nothing is known: again soon, until the deadline.
    renew_at_ = now + std::max(kRetryMin, times_.ttl / 20);
    return;
  }
  if (ignores_loss()) return ignore_loss();
  const Instant latest = deadline_ - kill_gap(times_.ttl);
  const bool soft = gently(Why::kLost);
  stop(Why::kLost, soft ? std::min(latest, now + times_.kill_after) : now, soft);
}

void RunPlan::command_ended(bool others_left, Instant now) {
  if (stopping()) return;
  over_ = true;
  if (!others_left) return;
  const Instant latest = deadline_ - kill_gap(times_.ttl);
  terminate_due_ = true;
  kill_at_ = std::min(latest, now + times_.kill_after);
}

void RunPlan::ignore_loss() {
  lost_ignored_ = true;
  why_ = Why::kLost;
}

void RunPlan::stop(Why why, Instant kill_at, bool softly) {
  over_ = true;
  why_ = why;
  kill_at_ = kill_at;
  terminate_due_ = softly;
}

// A third of the TTL, or half of the way to TERM when a slow answer has left less; up to 15 %
// sooner, so that those who were granted together do not renew together.
void RunPlan::plan_renewal(Instant now) {
  const Nanos room = std::max(deadline_ - times_.kill_after - now, Nanos(0));
  const Nanos span = std::min<Nanos>(times_.ttl / 3, room / 2);
  const auto jitter =
      random_.below(static_cast<std::uint64_t>(span.count()) * kJitterPercent / 100 + 1);
  renew_at_ = now + span - Nanos(jitter);
}

int RunPlan::exit_code(int command) const {
  if (why_ == Why::kMaxHold) return kExitMaxHold;
  if (why_ == Why::kLost && !ignores_loss()) return kExitLost;
  return command;
}

}  // namespace pawl::cli
