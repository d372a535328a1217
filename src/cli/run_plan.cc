#include "cli/run_plan.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

using client::kNever;

Instant after(Instant from, Millis span) {
  return span >= kNever - from ? kNever : from + span;
}

}  // namespace

WaitPlan::WaitPlan(std::optional<Millis> wait, Instant now)
    : end_(wait ? after(now, *wait) : kNever) {}

Millis WaitPlan::next_wait(Instant now) const {
  if (end_ == kNever) return limits::kWaitMax;
  const auto left = std::chrono::ceil<Millis>(end_ - now);
  return std::clamp(left, Millis(0), limits::kWaitMax);
}

// kLeaseLost: the lease was lost before it was returned, as after a freeze in the queue for longer
// than the TTL.
bool WaitPlan::should_retry(Code code, Instant now) const {
  return (code == Code::kBusy || code == Code::kLeaseLost) && now < end_;
}

Millis kill_gap(Millis ttl) {
  return std::max(Millis(100), ttl / 20);
}

client::KeepOptions keep_options(const RunTimes& times) {
  const Millis gap = kill_gap(times.ttl);
  client::KeepOptions options{.max_hold = times.max_hold};
  switch (times.on_lost) {
    case OnLost::kStop:
      options.uncertain_before = std::max(times.kill_after, gap);
      break;
    case OnLost::kKill:
      options.uncertain_before = gap;
      break;
    case OnLost::kIgnore:
      options.uncertain_before = Millis(0);
      break;
  }
  return options;
}

RunPlan::RunPlan(const RunTimes& times, Instant deadline, Instant now)
    : times_(times), deadline_(deadline) {
  if (times.max_hold > Millis(0)) hold_end_ = after(now, times.max_hold);
}

RunPlan::Limit RunPlan::limit() const {
  if (lost_ignored_) return {hold_end_, Why::kMaxHold};
  if (capped_ || hold_end_ <= deadline_) return {std::min(deadline_, hold_end_), Why::kMaxHold};
  return {deadline_, Why::kLost};
}

bool RunPlan::sends_term(Why why) const {
  return why == Why::kMaxHold || times_.on_lost == OnLost::kStop;
}

Instant RunPlan::first_signal(const Limit& limit) const {
  if (limit.at == kNever) return kNever;
  if (limit.why == Why::kLost && ignores_loss()) return limit.at;
  const Millis gap = kill_gap(times_.ttl);
  return limit.at - (sends_term(limit.why) ? std::max(times_.kill_after, gap) : gap);
}

RunPlan::Due RunPlan::advance(Instant now) {
  const Limit end = limit();
  if (!over_ && now >= first_signal(end)) {
    if (end.why == Why::kLost && ignores_loss()) {
      ignore_loss();
    } else {
      stop(end.why, end.at - kill_gap(times_.ttl), sends_term(end.why));
    }
  }
  if (!over_ && now >= stopped_end_) stop(Why::kMaxStopped, kill_after_term(now), true);
  Due due;
  if (!killed_ && now >= kill_at_) due.kill = killed_ = true;
  due.terminate = std::exchange(terminate_due_, false) && !due.kill;
  return due;
}

Instant RunPlan::latest_kill() const {
  if (stopping()) return kill_at_;
  const Limit end = limit();
  const bool ignored = end.why == Why::kLost && ignores_loss();
  return over_ || ignored || end.at == kNever ? kNever : end.at - kill_gap(times_.ttl);
}

Instant RunPlan::next_timer() const {
  if (terminate_due_) return Instant{};
  if (stopping()) return killed_ ? kNever : kill_at_;
  return over_ ? kNever : std::min(first_signal(limit()), stopped_end_);
}

void RunPlan::on_lease(const client::LeaseStatus& lease, Instant now) {
  if (!needs_lease()) return;
  deadline_ = std::max(deadline_, lease.deadline);
  capped_ = lease.final;
  // Lost before its deadline: pawld refused to renew it.
  const bool refused = lease.state == LeaseState::kLost && now < lease.deadline;
  if (!refused) return;
  if (ignores_loss()) return ignore_loss();
  const bool term = sends_term(Why::kLost);
  stop(Why::kLost, term ? kill_after_term(now) : now, term);
}

void RunPlan::command_stopped(Instant now) {
  if (times_.max_stopped > Millis(0)) stopped_end_ = after(now, times_.max_stopped);
}

void RunPlan::command_ended(bool others_left, Instant now) {
  if (stopping()) return;
  over_ = true;
  if (!others_left) return;
  terminate_due_ = true;
  kill_at_ = kill_after_term(now);
}

Instant RunPlan::kill_after_term(Instant now) const {
  return std::min(deadline_ - kill_gap(times_.ttl), now + times_.kill_after);
}

void RunPlan::ignore_loss() {
  lost_ignored_ = true;
  why_ = Why::kLost;
}

void RunPlan::stop(Why why, Instant kill_at, bool term_first) {
  over_ = true;
  why_ = why;
  kill_at_ = kill_at;
  terminate_due_ = term_first;
}

int RunPlan::exit_code(int command) const {
  if (why_ == Why::kMaxHold || why_ == Why::kMaxStopped) return kExitMaxHold;
  if (why_ == Why::kLost && !ignores_loss()) return kExitLost;
  return command;
}

}  // namespace pawl::cli
