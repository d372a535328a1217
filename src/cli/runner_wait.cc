// The first half of Runner: the queue, and telling people about it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/runner.h"
#include "cli/utf8.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using client::boot_now;

constexpr Millis kAnswerPatience = 10s;  // beyond the wait itself
constexpr Millis kFarewell = 1s;         // to withdraw a wait
constexpr Millis kRefresh = 1s;          // of the line on a terminal
constexpr Millis kRepeat = 30s;          // of the line in a log

// The place in the queue: as pawld said when we joined, or better, where our own label stands now.
std::uint64_t place_in(const wire::Value& lock, const std::string& owner, std::uint64_t joined_at) {
  const auto& queue = items_of(lock, "queue");
  const auto is_ours = [&](const wire::Value& waiter) {
    const wire::Value* label = waiter.find("owner");
    return label != nullptr && label->text == owner;
  };
  const auto found = std::find_if(queue.begin(), queue.end(), is_ours);
  if (std::count_if(queue.begin(), queue.end(), is_ours) != 1) return joined_at;
  return static_cast<std::uint64_t>(found - queue.begin()) + 1;
}

}  // namespace

std::optional<int> Runner::wait_for_lock() {
  const WaitPlan plan(request_.patience, boot_now());
  for (;;) {
    const Instant now = boot_now();
    request_.call.wait = plan.next_wait(now);
    request_.call.give_up = now + request_.call.wait + kAnswerPatience;
    watch_at_ = now;
    answer_.reset();
    acquire_ = pawld_.machine().acquire(request_.call, now);
    if (const auto code = await_answer()) return code;
    if (*answer_) {
      held_ = **answer_;
      return std::nullopt;
    }
    if (!plan.again(answer_->error().code, boot_now())) return refused(answer_->error());
  }
}

std::optional<int> Runner::await_answer() {
  pawld_.flush();
  while (!answer_) {
    const bool queued = pawld_.machine().position(acquire_).has_value();
    const short ready = nap(std::min(pawld_.next_timer(), queued ? watch_at_ : client::kNever));
    if (const auto code = heed_signals_while_waiting()) return code;
    pawld_.turn(ready);
    for (client::Completion& done : pawld_.machine().take_completions()) {
      if (done.call == acquire_) answer_ = std::get<Result<client::Held>>(std::move(done.outcome));
      if (done.call == inspect_) take_inspection(std::get<Result<wire::Value>>(done.outcome));
    }
    watch_holder();
  }
  return std::nullopt;
}

std::optional<int> Runner::heed_signals_while_waiting() {
  for (const int signal : signals_.take()) {
    if (ends_a_process(signal)) return leave_queue(signal);
    if (stops_a_process(signal)) raise(SIGSTOP);
  }
  return std::nullopt;
}

// Withdraws the wait, and gives back what may have been granted just now: nobody must be granted to
// who has gone.
int Runner::leave_queue(int signal) {
  pawld_.machine().cancel(acquire_, boot_now());
  const Instant end = boot_now() + kFarewell;
  while (!pawld_.machine().idle() && boot_now() < end) {
    pawld_.flush();
    pawld_.turn(nap(std::min(pawld_.next_timer(), end)));
    (void)signals_.take();
  }
  return kExitSignalled + signal;
}

void Runner::watch_holder() {
  const bool queued = pawld_.machine().position(acquire_).has_value();
  if (answer_ || !queued || boot_now() < watch_at_) return;
  watch_at_ = boot_now() + (isatty(STDERR_FILENO) == 1 ? kRefresh : kRepeat);
  inspected_ = 0;
  inspect_next();
}

void Runner::inspect_next() {
  const Instant now = boot_now();
  inspect_ = pawld_.machine().command(
      {.words = {"INSPECT", request_.call.locks[inspected_]}, .give_up = now + kAnswerPatience},
      now);
  pawld_.flush();
}

void Runner::take_inspection(const Result<wire::Value>& shown) {
  inspect_ = {};
  const bool queued = pawld_.machine().position(acquire_).has_value();
  if (!shown || answer_ || !queued) return;
  // Of several locks, the first that somebody holds; the last, if it is only the queue that stands
  // in the way.
  const bool last = inspected_ + 1 == request_.call.locks.size();
  if (!items_of(*shown, "holders").empty() || last) return show_holder(*shown);
  ++inspected_;
  inspect_next();
}

void Runner::show_holder(const wire::Value& lock) {
  const auto joined_at = pawld_.machine().position(acquire_).value_or(1);
  std::string line = fmt::format("waiting for {}: ", text_of(lock, "lock"));
  const auto& holders = items_of(lock, "holders");
  line +=
      holders.empty()
          ? text_of(lock, "state")
          : fmt::format("held by {} (token {}) for {}", text_of(holders.front(), "owner"),
                        text_of(holders.front(), "token"), duration_of(holders.front(), "held_ms"));
  if (holders.size() > 1) line += fmt::format(" and {} more", holders.size() - 1);
  line += fmt::format("; place {} in the queue", place_in(lock, request_.call.owner, joined_at));
  isatty(STDERR_FILENO) == 1 ? console_.progress("pawl: " + line) : voice_.say(line);
}

int Runner::refused(const Error& error) {
  if (error.code == Code::kBusy || error.code == Code::kLeaseLost) {
    std::string names;
    for (const std::string& lock : request_.call.locks)
      names += (names.empty() ? "" : ", ") + printable(lock);
    const char* hint = request_.patience == Millis(0) ? "Leave out -n to wait for it."
                                                      : "Wait longer with -w, or see `pawl show`.";
    return console_.fail(
        {Code::kBusy, fmt::format("not acquired: {} is not free. {}", names, hint)},
        request_.not_acquired);
  }
  if (error.code == Code::kUnavailable && !pawld_.machine().greeted()) {
    return pawld_.is_misfit() ? console_.fail_misfit(error.detail)
                              : console_.fail_unreachable(error.detail);
  }
  return console_.fail(error);
}

}  // namespace pawl::cli
