#include "cli/runner.h"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/utf8.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using client::boot_now;
using client::kNever;

constexpr Millis kLook =
    10ms;  // between looks at a group that is ending; nothing tells us of grandchildren
constexpr Millis kStuck = 5s;  // after KILL: what still exists then hangs in the kernel

client::MachineOptions machine_options(Millis ttl, const Auth& auth) {
  client::MachineOptions options;
  options.name = "pawl-run";
  options.auth = auth;
  // Several attempts must fit between the first unanswered renewal and TERM.
  options.answer_timeout = std::clamp<Millis>(ttl / 3, 500ms, 5s);
  options.backoff_max = std::clamp<Millis>(ttl / 10, 50ms, 2s);
  options.backoff_min = std::min(options.backoff_min, options.backoff_max);
  return options;
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    entries.emplace_back(*entry);
  return entries;
}

}  // namespace

Runner::Runner(Console& console, RunRequest request, std::vector<client::Endpoint> endpoints)
    : console_(console),
      request_(std::move(request)),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
      voice_(request_.report_fd),
      pawld_(std::move(endpoints), random_, machine_options(request_.times.ttl, console.auth()),
             std::clamp<Millis>(request_.times.ttl / 3, 500ms, 3s)) {}

int Runner::run() {
  int code = kExitFailed;
  if (!signals_.ready() || !timer_) {
    console_.note("pawl: no file descriptor left for signals and timer");
  } else if (const auto refusal = wait_for_lock()) {
    code = *refusal;
  } else {
    begin_hold();
    code = request_.command.empty() ? stay() : hold();
  }
  voice_.exits(code);
  return code;
}

short Runner::nap(Instant until) {
  itimerspec at{};
  if (until != kNever) {
    const Nanos due = std::max(until.time_since_epoch(), Nanos(1));  // 0 would mean never
    at.it_value = {static_cast<time_t>(due / 1s), static_cast<long>((due % 1s).count())};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
  pollfd fds[3] = {pawld_.interest(), {signals_.fd(), POLLIN, 0}, {timer_.get(), POLLIN, 0}};
  if (poll(fds, 3, -1) < 0) return 0;  // A stop and continue interrupts it; the caller looks again.
  return fds[0].revents;
}

void Runner::begin_hold() {
  pawld_.be_patient();
  voice_.acquired(held_);
  console_.end_progress();
  request_.times.ttl = held_.ttl;
}

int Runner::hold() {
  RunPlan plan(request_.times, held_.deadline, boot_now(), random_);
  if (boot_now() >=
      held_.deadline -
          request_.times.kill_after) {  // Kept from it since the grant, by a freeze perhaps.
    release(kLostPatience);
    voice_.lost("lost");
    voice_.say("the lease was lost before the command started; it was not started");
    return kExitLost;
  }
  environment_ = command_environment(inherited_environment(), request_.names, held_);
  if (const auto refused = fence(plan)) return *refused;
  bool before_exec = false;
  process_.emplace();
  if (const int error = process_->start(request_.command, environment_, signals_, before_exec)) {
    return not_started(error, before_exec);
  }
  voice_.started(process_->pid());
  while (!group_gone_) {
    turn(plan, ended_ ? boot_now() + kLook : kNever);
    watch_command(plan);
  }
  return end(plan, plan.exit_code(*ended_));
}

void Runner::turn(RunPlan& plan, Instant look) {
  const short ready = nap(std::min({plan.next_timer(), pawld_.next_timer(), look}));
  carry_out(plan);  // Before anything else: who was frozen past the deadline learns it here.
  forward_signals();
  pawld_.turn(ready);
  take_renewal(plan);
}

int Runner::end(const RunPlan& plan, int code) {
  process_->signal_group(SIGKILL);  // Reaches nobody, unless someone was born while we looked.
  process_->take_terminal();
  release(plan.why() == RunPlan::Why::kLost ? kLostPatience : kReleasePatience);
  return code;
}

// A guard is advanced by a process like CMD itself: renewed for, signalled, and killed before the
// lock can pass on. A database that does not answer can then hold up nothing.
std::optional<int> Runner::fence(RunPlan& plan) {
  for (const std::vector<std::string>& words : request_.guard_commands) {
    bool before_exec = false;
    process_.emplace();
    if (const int error = process_->start(words, environment_, signals_, before_exec)) {
      return not_started(error, before_exec);
    }
    std::optional<int> ended;
    while (!(ended = process_->ended())) turn(plan, kNever);
    if (plan.why() != RunPlan::Why::kNone) return end(plan, plan.exit_code(*ended));
    if (*ended == kExitOk) continue;
    voice_.say("a guard could not be advanced; the command was not started");
    // Not -E's code: that one says that another holder does the work, and here nobody does it.
    if (*ended == kExitNotAcquired) return end(plan, kExitGuardBusy);
    const bool specific = *ended == kExitStale || *ended > kExitSignalled;
    return end(plan, specific ? *ended : kExitFailed);
  }
  return std::nullopt;
}

int Runner::not_started(int error, bool before_exec) {
  process_->take_terminal();
  const bool missing = error == ENOENT || error == ENOTDIR;
  const int code = before_exec ? kExitFailed : missing ? kExitNotFound : kExitNoExecute;
  voice_.say(fmt::format("{}: {}", printable(request_.command.front()),
                         missing ? "command not found" : std::generic_category().message(error)));
  release(kReleasePatience);
  return code;
}

void Runner::carry_out(RunPlan& plan) {
  const Instant now = boot_now();
  const auto due = plan.advance(now);
  if (due.kill) {
    process_->signal_group(SIGKILL);
    killed_at_ = now;
  }
  if (due.terminate) {
    process_->signal_group(SIGTERM);
    process_->signal_group(SIGCONT);  // What is stopped could not act on it.
  }
  tell_why(plan);
  if (due.renew) renew(plan, now);
}

void Runner::renew(const RunPlan& plan, Instant now) {
  renewal_ = pawld_.machine().renew({held_.lease, held_.ttl, plan.deadline()}, now);
  pawld_.flush();
}

void Runner::tell_why(const RunPlan& plan) {
  if (told_why_ || plan.why() == RunPlan::Why::kNone) return;
  told_why_ = true;
  const char* then = request_.command.empty() ? "it is over"
                     : plan.stopping()        ? "stopping the command"
                                       : "the command continues without it (--on-lost=ignore)";
  if (plan.why() == RunPlan::Why::kMaxHold) {
    voice_.lost("max_hold");
    return voice_.say(
        fmt::format("--max-hold {} reached; {}", to_text(request_.times.max_hold), then));
  }
  voice_.lost("lost");
  const std::string& trouble = pawld_.machine().trouble();
  voice_.say(fmt::format("the lease (token {}) {}{}{}; {}", held_.token.value,
                         boot_now() >= plan.deadline() ? "is lost" : "cannot be confirmed",
                         trouble.empty() ? "" : ": ", printable(trouble), then));
}

void Runner::forward_signals() {
  for (const int signal : signals_.take()) {
    if (signal != SIGCHLD) process_->signal_group(signal);
  }
}

void Runner::take_renewal(RunPlan& plan) {
  for (client::Completion& done : pawld_.machine().take_completions()) {
    if (done.call != renewal_) continue;
    const auto& renewal = std::get<Result<client::Renewal>>(done.outcome);
    if (!renewal) {
      plan.renewal_failed(renewal.error().code, boot_now());
      continue;
    }
    plan.renewed(renewal->deadline, renewal->expires_in, boot_now());
    voice_.renewed(renewal->expires_in);
  }
}

void Runner::watch_command(RunPlan& plan) {
  if (!ended_) {
    if (process_->was_stopped() && process_->has_terminal()) return suspend_with_command();
    ended_ = process_->ended();
    if (!ended_) return;
    plan.command_ended(process_->group_lives(), boot_now());
  }
  group_gone_ = !process_->group_lives();
  if (!group_gone_ && boot_now() - kStuck >= killed_at_) {
    voice_.say("a process of the command survived SIGKILL (it is stuck in the kernel)");
    group_gone_ = true;
  }
}

// Ctrl-Z, as a shell expects it. Nothing is renewed meanwhile; the command is continued by us,
// after the deadline has been looked at, so it cannot run on by itself.
void Runner::suspend_with_command() {
  process_->take_terminal();
  voice_.say("stopped; without renewals the lease ends by itself, and the command with it");
  raise(SIGSTOP);
  process_->give_terminal();
}

// Sent until confirmed, but the exit does not wait long: without renewals the lease ends by itself.
void Runner::release(Millis patience) {
  const Instant now = boot_now();
  const auto call = pawld_.machine().release({held_.lease, held_.ttl, now + patience}, now);
  std::optional<Result<client::Release>> released;
  pawld_.flush();
  while (!released) {
    pawld_.turn(nap(pawld_.next_timer()));
    (void)signals_.take();
    for (client::Completion& done : pawld_.machine().take_completions()) {
      if (done.call == call) released = std::get<Result<client::Release>>(std::move(done.outcome));
    }
  }
  voice_.released(released->has_value());
  if (!*released && !told_why_) {
    voice_.say(fmt::format("the release was not confirmed ({}); the lease ends by itself within {}",
                           printable(released->error().detail), to_text(held_.ttl)));
  }
}

}  // namespace pawl::cli
