#include "cli/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "base/assert.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using client::boot_now;
using client::kNever;

// Between looks at processes that are ending: no event reports the end of grandchildren.
constexpr Millis kTreeCheck = 10ms;
// After KILL: a process that still exists then hangs in the kernel.
constexpr Millis kStuck = 5s;

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
      reporter_(request_.report_fd),
      loop_(std::move(endpoints), console.auth(), request_.times.ttl),
      keeper_(loop_.pawld.machine(), loop_.random) {}

int Runner::run() {
  int code = kExitFailed;
  if (!loop_.ready()) {
    code = console_.fail_plainly(
        {Code::kUnavailable, "no file descriptor is left for signals and a timer"}, kExitFailed);
  } else {
    LockWait wait(console_, loop_, request_, reporter_);
    auto outcome = wait.run();
    if (const int* refused = std::get_if<int>(&outcome)) {
      code = *refused;
      ended_by_ = wait.cancelled_by();
    } else {
      granted_ = std::get<client::GrantedLease>(std::move(outcome));
      start_keeping();
      code = request_.command.empty() ? hold_without_command() : hold();
    }
  }
  reporter_.exited(code);
  return code;
}

void Runner::start_keeping() {
  loop_.pawld.keep_retrying();
  reporter_.acquired(granted_);
  console_.end_progress();
  request_.times.ttl = granted_.ttl;
  const Instant now = boot_now();
  plan_.emplace(request_.times, granted_.deadline, now);
  lease_ = keeper_.add(granted_, keep_options(request_.times), now);
}

// --- With a command ------------------------------------------------------------------------------

int Runner::hold() {
  if (boot_now() >= granted_.deadline - request_.times.kill_after) {  // A freeze since the grant.
    reporter_.lost("lost");
    loss_reported_ = true;
    return fail({Code::kLeaseLost,
                 "the lease was lost before the command started; it was not started. Run it again"},
                kExitLost);
  }
  environment_ = command_environment(inherited_environment(), request_.names, granted_);
  if (const auto refused = advance_guards()) return *refused;
  if (const auto refused = start(request_.command)) return *refused;
  report_start();
  // It may have ended, or stopped, while start() looked at its exec only.
  for (watch_command(); !over_; watch_command())
    run_once(ended_ || killed_at_ != kNever ? boot_now() + kTreeCheck : kNever);
  return end(ended_.value_or(CommandProcess::End{}));
}

std::optional<int> Runner::start(const std::vector<std::string>& words) {
  for (const int signal : loop_.signals.take()) {  // Sent before there was a process to send it to.
    if (!ends_a_process(signal)) continue;
    ended_by_ = signal;
    return end_without_command(kExitSignalled + signal);
  }
  process_.emplace();
  if (const int error = process_->start(words, environment_, loop_.signals, plan_->latest_kill())) {
    return fail({Code::kUnavailable,
                 "the command was not started: " + std::generic_category().message(error)},
                kExitFailed);
  }
  // A program on a file system that hangs: the lease is renewed meanwhile, and the deadline kept.
  while (process_->exec_state() == ExecState::kPending && !over_) {
    run_once(killed_at_ == kNever ? kNever : boot_now() + kTreeCheck);
    give_up_if_stuck();
    if (process_->ended()) break;
  }
  if (over_) return end({});
  const ExecState exec = process_->exec_state();
  // Killed before it was known: what it has started, if anything, ends as it does later.
  if (exec == ExecState::kPending) return plan_->stopping() ? std::optional(end({})) : std::nullopt;
  if (exec == ExecState::kDone) return std::nullopt;
  return not_started(process_->exec_error(), words.front());
}

void Runner::run_once(Instant until) {
  const short ready = loop_.wait(std::min(next_timer(), until));
  apply_plan();  // First: after a freeze past the deadline it must kill before anything else.
  forward_signals();
  loop_.pawld.process(ready);
  update_lease();
  process_->set_kill_at(plan_->latest_kill());
}

Instant Runner::next_timer() const {
  const Instant reason_due =
      loss_seen_ == kNever || loss_reported_ ? kNever : loss_seen_ + kReasonTime;
  return std::min(
      {plan_->next_timer(), loop_.pawld.next_timer(), keeper_.next_timer(), reason_due});
}

int Runner::end(const CommandProcess::End& command) {
  (void)process_->kill();  // For a process that was forked during the last check.
  finish_loss_report();
  if (killed_at_ != kNever) terminal_.restore_modes();
  terminal_.recover();
  if (!not_stopped_) {
    const int code = plan_->exit_code(command.code);
    if (code == command.code) ended_by_ = command.signal;
    return end_without_command(code);
  }
  std::string names;
  for (const TreeProcess& process : process_->survivors()) {
    names +=
        fmt::format("{}{} ({})", names.empty() ? "" : ", ", process.pid, printable(process.name));
  }
  reporter_.message(fmt::format(
      "NOT STOPPED: {} {}. It may run beside the next holder of the lock: stop it by hand. The "
      "lock is not released; the lease ends by itself within {}",
      names.empty() ? "a process of the command" : names,
      refused_.empty() ? "survived SIGKILL, so it hangs in the kernel"
                       : "runs as another user, whom pawl may not signal",
      to_text(granted_.ttl)));
  return kExitNotStopped;
}

int Runner::end_without_command(int code) {
  release(plan_->why() == RunPlan::Why::kLost ? kLostReleaseTime : kReleaseTime);
  return code;
}

// Each guard is advanced by a process like CMD itself: it gets signals, the lease is renewed
// meanwhile, and it is killed before the deadline. So a database that does not answer blocks
// nothing.
std::optional<int> Runner::advance_guards() {
  for (const std::vector<std::string>& words : request_.guard_commands) {
    if (const auto refused = start(words)) return refused;
    std::optional<CommandProcess::End> ended;
    while (!(ended = process_->ended())) run_once(kNever);
    if (plan_->why() != RunPlan::Why::kNone) return end(*ended);
    if (ended->code == kExitOk) continue;
    reporter_.message("a guard could not be advanced; the command was not started");
    // Not -E's code: that one says that another holder does the work, and here nobody does it.
    if (ended->code == kExitNotAcquired) return end({.code = kExitGuardBusy});
    const bool specific = ended->code == kExitStale || ended->code > kExitSignalled;
    return end(specific ? *ended : CommandProcess::End{.code = kExitFailed});
  }
  return std::nullopt;
}

int Runner::not_started(int error, const std::string& program) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  const bool forked = process_->exec_state() != ExecState::kNotForked;
  const std::string why = fmt::format(
      "{}: {}", program, missing ? "command not found" : std::generic_category().message(error));
  if (!forked) return fail({Code::kUnavailable, why}, kExitFailed);
  return fail({Code::kInvalid, why}, missing ? kExitNotFound : kExitNoExecute);
}

// The lease first: a reader of stdout that does not read must not keep it.
int Runner::fail(const Error& error, int code) {
  return console_.fail_plainly(error, end_without_command(code));
}

void Runner::report_start() {
  const CommandCgroup* cgroup = process_->cgroup();
  reporter_.started(process_->pid(), cgroup == nullptr ? "descendants" : "cgroup");
  if (request_.verbose) {
    reporter_.message(
        cgroup != nullptr
            ? fmt::format("everything that the command starts is in the cgroup {} and is stopped "
                          "before the lock can pass on",
                          printable(cgroup->path()))
            : fmt::format(
                  "every descendant of the command is stopped before the lock can pass on, except "
                  "one that runs as another user (there is no cgroup: {})",
                  printable(process_->no_cgroup_reason())));
  }
  if (cgroup == nullptr && changes_user(request_.command.front())) {
    reporter_.message(fmt::format(
        "{} runs as another user, whom pawl may not signal: when the lease is lost it cannot be "
        "stopped. Run pawl itself as that user instead, as in `sudo pawl run LOCK -- CMD`",
        printable(request_.command.front())));
  }
}

void Runner::apply_plan() {
  const Instant now = boot_now();
  const auto due = plan_->advance(now);
  if (due.kill) kill_command(now);
  if (due.terminate) process_->terminate();
  report_loss();
}

void Runner::kill_command(Instant now) {
  refused_ = process_->kill();
  killed_at_ = std::min(killed_at_, now);
}

void Runner::forward_signals() {
  for (const ReceivedSignal& signal : loop_.signals.receive()) {
    if (signal.number == SIGCHLD) {
      process_->reap();
    } else if (should_forward(signal)) {
      process_->forward(signal.number);
    }
  }
}

// CMD is in our process group: what was sent to the group has reached it.
bool Runner::should_forward(const ReceivedSignal& signal) const {
  switch (signal.origin) {
    case ReceivedSignal::Origin::kRelay:
      return false;
    case ReceivedSignal::Origin::kProcess:
      return !process_->includes(signal.sender);  // It did `kill 0`.
    case ReceivedSignal::Origin::kKernel:
      if (process_->pid() == 0) return true;  // It came before the fork.
      // When the terminal is gone, only the first process of the session is told.
      if (signal.number == SIGHUP) return getsid(0) == getpid();
      return signal.number != SIGINT && signal.number != SIGQUIT && signal.number != SIGWINCH &&
             !stops_a_process(signal.number);
  }
  return false;
}

void Runner::watch_command() {
  if (!ended_) {
    if (const int signal = process_->take_stop(); signal != 0 && terminal_.exists()) {
      reporter_.message(
          "stopped; without renewals the lease ends by itself, and the command with it");
      if (process_->suspend(signal, terminal_)) stop_seen_ = signal;
      return;
    }
    watch_stops();
    ended_ = process_->ended();
    if (ended_) {
      plan_->command_ended(process_->lives(), boot_now());
      update_lease();
    }
  }
  if (ended_ && !process_->lives()) {
    over_ = true;
    return;
  }
  give_up_if_stuck();
}

// A stopped command keeps the lock, as it would in a debugger; someone has to be told.
void Runner::watch_stops() {
  const int signal = process_->stopped_by();
  if (signal == 0 && stopped_without_us_) {
    plan_->command_continued();
    reporter_.continued();
    reporter_.message("the command was continued");
  }
  if (signal == 0) stopped_without_us_ = false;
  if (signal == stop_seen_) return;
  stop_seen_ = signal;
  if (signal == 0 || plan_->stopping()) return;
  stopped_without_us_ = true;
  plan_->command_stopped(boot_now());
  reporter_.stopped(signal);
  const Millis limit = request_.times.max_stopped;
  reporter_.message(fmt::format(
      "SIG{0} has stopped the command, which keeps the lock meanwhile{1}. Continue it with `kill "
      "-CONT {2}`, or end it with `kill {3}`",
      sigabbrev_np(signal),
      limit > Millis(0) ? fmt::format(" for {} (--max-stopped)", to_text(limit)) : "",
      process_->pid(), getpid()));
}

// After KILL. A process that forked in that moment gets another one.
void Runner::give_up_if_stuck() {
  if (killed_at_ == kNever || over_) return;
  const Instant now = boot_now();
  kill_command(now);
  const std::size_t left = process_->survivors().size();
  if (left == 0 || (left > refused_.size() && now - kStuck < killed_at_)) return;
  over_ = not_stopped_ = true;
}

// --- Without a command ---------------------------------------------------------------------------

int Runner::hold_without_command() {
  bool announced = false;
  std::optional<int> code;
  while (!code) {
    (void)plan_->advance(boot_now());  // First: after a freeze past the deadline the lease is lost.
    report_loss();
    if (plan_->stopping()) {
      code = plan_->exit_code(kExitOk);
    } else if (!std::exchange(announced, true) && !request_.announce(granted_)) {
      reporter_.message(
          "stdout cannot be written, so the election could not be reported; the "
          "lease is released");
      code = kExitOutput;
    } else {
      code = handle_signals();
    }
    if (code) break;
    loop_.pawld.process(loop_.wait(next_timer()));
    update_lease();
  }
  finish_loss_report();
  release(plan_->why() == RunPlan::Why::kLost ? kLostReleaseTime : kReleaseTime);
  return *code;
}

std::optional<int> Runner::handle_signals() {
  for (const int signal : loop_.signals.take()) {
    if (ends_a_process(signal)) {
      ended_by_ = signal;
      return kExitSignalled + signal;
    }
    if (stops_a_process(signal)) (void)stop_this_process(signal);
  }
  return std::nullopt;
}

// --- The lease -----------------------------------------------------------------------------------

void Runner::update_lease() {
  client::PollConnection& pawld = loop_.pawld;
  const Instant now = boot_now();
  for (const client::Completion& done : pawld.machine().take_completions())
    keeper_.on_completion(done, now);
  if (!plan_->needs_lease()) keeper_.stop_renewing(lease_);
  keeper_.on_timer(now);
  (void)keeper_.take_changes();  // status() says all.
  handle_asks();
  const client::LeaseStatus status = keeper_.status(lease_, now);
  plan_->on_lease(status, now);
  if (status.renewals != renewals_reported_) reporter_.renewed(status.expires_in);
  renewals_reported_ = status.renewals;
  pawld.flush();
  if (loss_seen_ != kNever) report_loss();
}

void Runner::handle_asks() {
  for (const client::LeaseAsk& ask : keeper_.take_asks()) {
    reporter_.release_wanted(ask.wanted);
    const int signal = request_.on_ask.signal;
    const bool sends = signal != 0 && process_ && process_->exec_state() == ExecState::kDone;
    if (request_.on_ask.report) {
      reporter_.message(fmt::format(
          "{} asks for {}{}{}", printable(ask.wanted.by), printable(ask.wanted.lock),
          ask.wanted.reason.empty() ? "" : ": " + printable(ask.wanted.reason),
          sends ? fmt::format("; sending SIG{} to the command", sigabbrev_np(signal)) : ""));
    }
    if (sends) process_->forward(signal);
  }
}

bool Runner::awaits_reason(Instant now) const {
  return loss_seen_ != kNever && !loss_reported_ && now < loss_seen_ + kReasonTime &&
         keeper_.awaits_ending(lease_);
}

// The message waits for pawld's reason; nothing else does.
void Runner::report_loss() {
  if (loss_reported_ || plan_->why() == RunPlan::Why::kNone) return;
  const Instant now = boot_now();
  if (loss_seen_ == kNever) {
    loss_seen_ = now;
    reporter_.lost(plan_->why() == RunPlan::Why::kMaxHold      ? "max_hold"
                   : plan_->why() == RunPlan::Why::kMaxStopped ? "max_stopped"
                                                               : "lost");
  }
  if (awaits_reason(now)) return;
  loss_reported_ = true;
  reporter_.message(loss_text(now));
}

std::string Runner::loss_text(Instant now) {
  const char* then = request_.command.empty() ? "it is over"
                     : plan_->stopping()      ? "stopping the command"
                                         : "the command continues without it (--on-lost=ignore)";
  if (plan_->why() == RunPlan::Why::kMaxHold)
    return fmt::format("--max-hold {} reached; {}", to_text(request_.times.max_hold), then);
  if (plan_->why() == RunPlan::Why::kMaxStopped)
    return fmt::format("--max-stopped {} reached; {}", to_text(request_.times.max_stopped), then);
  const client::LeaseStatus status = keeper_.status(lease_, now);
  if (!status.ending.empty()) {
    const bool broken = status.ending.starts_with("broken");
    return fmt::format("the lease (token {}) {} {}; {}", granted_.token.value,
                       broken ? "was" : "is over:", printable(status.ending), then);
  }
  const std::string why = loop_.pawld.machine().last_error();
  return fmt::format("the lease (token {}) {}: {}; {}", granted_.token.value,
                     now >= plan_->deadline() ? "is lost" : "cannot be confirmed",
                     printable(why.empty() ? status.reason : why), then);
}

void Runner::finish_loss_report() {
  while (awaits_reason(boot_now())) {
    loop_.pawld.process(loop_.wait(next_timer()));
    (void)loop_.signals.take();  // It ends anyway.
    update_lease();
  }
  report_loss();
}

// Repeated until confirmed, but the exit does not wait long: without renewals the lease ends by
// itself.
void Runner::release(Millis timeout) {
  const Instant now = boot_now();
  const auto call = keeper_.release(lease_, now + timeout, now);
  PAWL_ASSERT(call.has_value());  // It is released only here.
  const auto released = loop_.finish<client::ReleaseResult>(*call);
  reporter_.released(released.has_value());
  if (!released && !loss_reported_) {
    reporter_.message(
        fmt::format("the release was not confirmed ({}); the lease ends by itself within {}",
                    printable(released.error().detail), to_text(granted_.ttl)));
  }
}

}  // namespace pawl::cli
