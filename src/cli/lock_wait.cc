#include "cli/lock_wait.h"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/process_tree.h"
#include "cli/reply.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using client::boot_now;
using client::kNever;

constexpr Millis kAnswerTimeout = 10s;  // beyond the wait itself
constexpr Millis kCancelTime = 1s;      // to withdraw a wait
constexpr Millis kStatusTime = 1s;      // to ask why nothing was granted
constexpr Millis kRefresh = 1s;         // of the line on a terminal
constexpr Millis kRepeat = 30s;         // of the line in a log

// The position in the queue: as pawld answered when we joined or, if it is found, of our label now.
std::uint64_t position_in(const wire::Value& lock, const std::string& owner,
                          std::uint64_t joined_at) {
  const auto& queue = items_of(lock, "queue");
  const auto is_ours = [&](const wire::Value& waiter) {
    const wire::Value* label = waiter.find("owner");
    return label != nullptr && label->text == owner;
  };
  const auto found = std::find_if(queue.begin(), queue.end(), is_ours);
  if (std::count_if(queue.begin(), queue.end(), is_ours) != 1) return joined_at;
  return static_cast<std::uint64_t>(found - queue.begin()) + 1;
}

std::string holders_text(const wire::Value& lock) {
  const auto& holders = items_of(lock, "holders");
  std::string text =
      fmt::format("held by {} (token {}) for {}", text_of(holders.front(), "owner"),
                  text_of(holders.front(), "token"), duration_of(holders.front(), "held_ms"));
  if (const auto count = integer_of(lock, "holder_count").value_or(1); count > 1)
    text += fmt::format(" and {} more", count - 1);
  return text;
}

}  // namespace

std::optional<std::string> restoring_text(const wire::Value& status) {
  if (integer_of(status, "restoring_ms").value_or(0) <= 0) return std::nullopt;
  return fmt::format("pawld was restored from a backup and grants no locks for another {}",
                     duration_of(status, "restoring_ms"));
}

// --- RunLoop -------------------------------------------------------------------------------------

RunLoop::RunLoop(std::vector<client::Endpoint> endpoints, const Auth& auth, Millis ttl)
    : pawld(std::move(endpoints), random, {.name = "pawl-run", .auth = auth},
            std::clamp<Millis>(ttl / 3, 500ms, 3s)),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {}

short RunLoop::wait(Instant until) {
  itimerspec at{};
  if (until != kNever) {
    const Nanos due = std::max(until.time_since_epoch(), Nanos(1));  // 0 would mean never
    at.it_value = {static_cast<time_t>(due / 1s), static_cast<long>((due % 1s).count())};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
  pollfd fds[3] = {pawld.interest(), {signals.fd(), POLLIN, 0}, {timer_.get(), POLLIN, 0}};
  if (poll(fds, 3, -1) < 0) return 0;  // Interrupted by stop and continue; the caller loops.
  return fds[0].revents;
}

// --- LockWait ------------------------------------------------------------------------------------

std::variant<client::GrantedLease, int> LockWait::run() {
  const WaitPlan plan(request_.patience, boot_now());
  client::AcquireCall call = request_.call;
  for (;;) {
    const Instant now = boot_now();
    call.wait = plan.next_wait(now);
    call.give_up = now + call.wait + kAnswerTimeout;
    show_at_ = now;
    answer_.reset();
    acquire_ = loop_.pawld.machine().acquire(call, now);
    if (const auto code = await_answer()) return *code;
    if (*answer_) return **answer_;
    if (!plan.should_retry(answer_->error().code, boot_now())) return refused(answer_->error());
  }
}

std::optional<int> LockWait::await_answer() {
  client::PollConnection& pawld = loop_.pawld;
  pawld.flush();
  while (!answer_) {
    const short ready = loop_.wait(std::min(pawld.next_timer(), queued() ? show_at_ : kNever));
    if (const auto code = handle_signals()) return code;
    pawld.process(ready);
    for (client::Completion& done : pawld.machine().take_completions()) {
      if (done.call == acquire_)
        answer_ = std::get<Result<client::GrantedLease>>(std::move(done.outcome));
      if (done.call == query_) on_answer(std::get<Result<wire::Value>>(done.outcome));
    }
    show_progress_if_due();
  }
  return std::nullopt;
}

std::optional<int> LockWait::handle_signals() {
  for (const int signal : loop_.signals.take()) {
    if (ends_a_process(signal)) return cancel(signal);
    if (stops_a_process(signal)) (void)stop_this_process(signal);
    if (signal == SIGCHLD) reap_orphans();  // As pid 1 of a container.
  }
  return std::nullopt;
}

// Withdraws the wait, and releases a lease that may have been granted just now.
int LockWait::cancel(int signal) {
  cancelled_by_ = signal;
  client::PollConnection& pawld = loop_.pawld;
  pawld.machine().cancel(acquire_, boot_now());
  const Instant end = boot_now() + kCancelTime;
  while (!pawld.machine().idle() && boot_now() < end) {
    pawld.flush();
    pawld.process(loop_.wait(std::min(pawld.next_timer(), end)));
    (void)loop_.signals.take();
  }
  return kExitSignalled + signal;
}

// --- Progress ------------------------------------------------------------------------------------

void LockWait::show_progress_if_due() {
  if (answer_ || !queued() || boot_now() < show_at_) return;
  show_at_ = boot_now() + (isatty(STDERR_FILENO) == 1 ? kRefresh : kRepeat);
  next_lock_ = 0;
  ask_next();
}

void LockWait::ask_next() {
  const Instant now = boot_now();
  const auto& locks = request_.call.locks;
  std::vector<std::string> words{"STATUS"};
  if (next_lock_ < locks.size()) words = {"INSPECT", locks[next_lock_]};
  query_ = loop_.pawld.machine().command(
      {.words = std::move(words), .give_up = now + kAnswerTimeout}, now);
  loop_.pawld.flush();
}

void LockWait::on_answer(const Result<wire::Value>& answer) {
  query_ = {};
  if (!answer || answer_ || !queued()) return;
  if (next_lock_ == request_.call.locks.size())  // STATUS: no lock is held.
    return show(restoring_text(*answer).value_or(text_of(*lock_, "state")));
  lock_ = *answer;
  if (!items_of(*answer, "holders").empty()) return show(holders_text(*answer));
  ++next_lock_;
  ask_next();
}

void LockWait::show(const std::string& obstacle) {
  const auto joined_at = loop_.pawld.machine().position(acquire_).value_or(1);
  const std::string line =
      fmt::format("waiting for {}: {}; position {} in the queue", text_of(*lock_, "lock"), obstacle,
                  position_in(*lock_, request_.call.owner, joined_at));
  isatty(STDERR_FILENO) == 1 ? console_.progress("pawl: " + line) : reporter_.message(line);
}

// --- Not acquired --------------------------------------------------------------------------------

int LockWait::refused(const Error& error) {
  client::PollConnection& pawld = loop_.pawld;
  if (error.code == Code::kBusy || error.code == Code::kLeaseLost) {
    std::string names;
    for (const std::string& lock : request_.call.locks)
      names += (names.empty() ? "" : ", ") + printable(lock);
    const Instant now = boot_now();
    const auto status = loop_.finish<wire::Value>(
        pawld.machine().command({.words = {"STATUS"}, .give_up = now + kStatusTime}, now));
    // Not the same as a lock that somebody else has: nobody does the work. -E does not apply.
    if (const auto restoring = status ? restoring_text(*status) : std::nullopt)
      return console_.fail({Code::kUnavailable, "not acquired: " + *restoring});
    const char* hint = request_.patience == Millis(0) ? "Leave out -n to wait for it."
                                                      : "Wait longer with -w, or see `pawl show`.";
    return console_.fail(
        {Code::kBusy, fmt::format("not acquired: {} is not free. {}", names, hint)},
        request_.not_acquired);
  }
  if (error.code == Code::kUnavailable && !pawld.machine().reached()) {
    return pawld.is_tls_mismatch() ? console_.fail_tls_mismatch(error.detail)
                                   : console_.fail_unreachable(error.detail);
  }
  return console_.fail(error);
}

}  // namespace pawl::cli
