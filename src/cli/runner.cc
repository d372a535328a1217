#include "cli/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
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

// Between checks of a process group that is ending: no event reports the end of grandchildren.
constexpr Millis kGroupCheck = 10ms;
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
    console_.note("pawl: no file descriptor left for signals and timer");
  } else {
    auto outcome = LockWait(console_, loop_, request_, reporter_).run();
    if (const int* refused = std::get_if<int>(&outcome)) {
      code = *refused;
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
    release(kLostReleaseTime);
    reporter_.lost("lost");
    reporter_.message("the lease was lost before the command started; it was not started");
    return kExitLost;
  }
  environment_ = command_environment(inherited_environment(), request_.names, granted_);
  if (const auto refused = advance_guards()) return *refused;
  bool before_exec = false;
  process_.emplace();
  if (const int error =
          process_->start(request_.command, environment_, loop_.signals, before_exec)) {
    return not_started(error, before_exec);
  }
  reporter_.started(process_->pid());
  while (!group_gone_) {
    run_once(ended_ ? boot_now() + kGroupCheck : kNever);
    watch_command();
  }
  return end(plan_->exit_code(*ended_));
}

void Runner::run_once(Instant until) {
  const short ready = loop_.wait(std::min(next_timer(), until));
  apply_plan();  // First: after a freeze past the deadline it must kill before anything else.
  forward_signals();
  loop_.pawld.process(ready);
  update_lease();
}

Instant Runner::next_timer() const {
  return std::min({plan_->next_timer(), loop_.pawld.next_timer(), keeper_.next_timer()});
}

int Runner::end(int code) {
  process_->signal_group(SIGKILL);  // For a process that was forked during the last check.
  process_->take_terminal();
  release(plan_->why() == RunPlan::Why::kLost ? kLostReleaseTime : kReleaseTime);
  return code;
}

// Each guard is advanced by a process like CMD itself: it gets signals, the lease is renewed
// meanwhile, and it is killed before the deadline. So a database that does not answer blocks
// nothing.
std::optional<int> Runner::advance_guards() {
  for (const std::vector<std::string>& words : request_.guard_commands) {
    bool before_exec = false;
    process_.emplace();
    if (const int error = process_->start(words, environment_, loop_.signals, before_exec)) {
      return not_started(error, before_exec);
    }
    std::optional<int> ended;
    while (!(ended = process_->ended())) run_once(kNever);
    if (plan_->why() != RunPlan::Why::kNone) return end(plan_->exit_code(*ended));
    if (*ended == kExitOk) continue;
    reporter_.message("a guard could not be advanced; the command was not started");
    // Not -E's code: that one says that another holder does the work, and here nobody does it.
    if (*ended == kExitNotAcquired) return end(kExitGuardBusy);
    const bool specific = *ended == kExitStale || *ended > kExitSignalled;
    return end(specific ? *ended : kExitFailed);
  }
  return std::nullopt;
}

int Runner::not_started(int error, bool before_exec) {
  process_->take_terminal();
  const bool missing = error == ENOENT || error == ENOTDIR;
  const int code = before_exec ? kExitFailed : missing ? kExitNotFound : kExitNoExecute;
  reporter_.message(
      fmt::format("{}: {}", printable(request_.command.front()),
                  missing ? "command not found" : std::generic_category().message(error)));
  release(kReleaseTime);
  return code;
}

void Runner::apply_plan() {
  const Instant now = boot_now();
  const auto due = plan_->advance(now);
  if (due.kill) {
    process_->signal_group(SIGKILL);
    killed_at_ = now;
  }
  if (due.terminate) {
    process_->signal_group(SIGTERM);
    process_->signal_group(SIGCONT);  // A stopped process could not act on TERM.
  }
  report_loss();
}

void Runner::forward_signals() {
  for (const int signal : loop_.signals.take()) {
    if (signal != SIGCHLD) process_->signal_group(signal);
  }
}

void Runner::watch_command() {
  if (!ended_) {
    if (process_->was_stopped() && process_->has_terminal()) return suspend_with_command();
    ended_ = process_->ended();
    if (!ended_) return;
    plan_->command_ended(process_->group_lives(), boot_now());
    update_lease();
  }
  group_gone_ = !process_->group_lives();
  if (!group_gone_ && boot_now() - kStuck >= killed_at_) {
    reporter_.message("a process of the command survived SIGKILL (it is stuck in the kernel)");
    group_gone_ = true;
  }
}

// Ctrl-Z, as a shell expects it. The lease is not renewed meanwhile. We continue the command, after
// apply_plan(), so that it cannot run past the deadline by itself.
void Runner::suspend_with_command() {
  process_->take_terminal();
  reporter_.message("stopped; without renewals the lease ends by itself, and the command with it");
  ::raise(SIGSTOP);
  process_->give_terminal();
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
  release(plan_->why() == RunPlan::Why::kLost ? kLostReleaseTime : kReleaseTime);
  return *code;
}

std::optional<int> Runner::handle_signals() {
  for (const int signal : loop_.signals.take()) {
    if (ends_a_process(signal)) return kExitSignalled + signal;
    if (stops_a_process(signal)) ::raise(SIGSTOP);
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
  const client::LeaseStatus status = keeper_.status(lease_, now);
  plan_->on_lease(status, now);
  if (status.renewals != renewals_reported_) reporter_.renewed(status.expires_in);
  renewals_reported_ = status.renewals;
  pawld.flush();
}

void Runner::report_loss() {
  if (loss_reported_ || plan_->why() == RunPlan::Why::kNone) return;
  loss_reported_ = true;
  const char* then = request_.command.empty() ? "it is over"
                     : plan_->stopping()      ? "stopping the command"
                                         : "the command continues without it (--on-lost=ignore)";
  if (plan_->why() == RunPlan::Why::kMaxHold) {
    reporter_.lost("max_hold");
    return reporter_.message(
        fmt::format("--max-hold {} reached; {}", to_text(request_.times.max_hold), then));
  }
  reporter_.lost("lost");
  const Instant now = boot_now();
  std::string why = loop_.pawld.machine().last_error();
  if (why.empty()) why = keeper_.status(lease_, now).reason;
  reporter_.message(fmt::format("the lease (token {}) {}{}{}; {}", granted_.token.value,
                                now >= plan_->deadline() ? "is lost" : "cannot be confirmed",
                                why.empty() ? "" : ": ", printable(why), then));
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
