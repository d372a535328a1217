// The first phase of `pawl run` and `pawl elect`: waiting for the lock, and the loop that this
// phase shares with the second one (runner.h).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "cli/run_reporter.h"
#include "cli/run_request.h"
#include "cli/signals.h"
#include "client/poll_connection.h"

namespace pawl::cli {

// One poll loop over the connection, the signals, and a timer on CLOCK_BOOTTIME, which also wakes
// it after a suspend.
class RunLoop {
 public:
  // Blocks the signals from here on. `ttl` is of the lease that is asked for.
  RunLoop(std::vector<client::Endpoint> endpoints, const Auth& auth, Millis ttl);

  // False when the kernel had no descriptor left.
  [[nodiscard]] bool ready() const { return signals.ready() && timer_; }
  // Sleeps until something happens, `until` at the latest. Returns the revents of the connection.
  [[nodiscard]] short wait(Instant until);
  // Runs the loop until this call has completed. Signals are ignored meanwhile.
  template <class T>
  Result<T> finish(client::CallId call) {
    pawld.flush();
    for (;;) {
      for (client::Completion& done : pawld.machine().take_completions()) {
        if (done.call == call) return std::get<Result<T>>(std::move(done.outcome));
      }
      pawld.process(wait(pawld.next_timer()));
      (void)signals.take();
    }
  }

  SystemRandom random;
  Signals signals;
  client::PollConnection pawld;

 private:
  UniqueFd timer_;
};

class LockWait {
 public:
  LockWait(Console& console, RunLoop& loop, const RunRequest& request, const RunReporter& reporter)
      : console_(console), loop_(loop), request_(request), reporter_(reporter) {}

  // Waits as long as the request says. The lease, or the exit code.
  [[nodiscard]] std::variant<client::GrantedLease, int> run();
  // The signal that ended the wait; 0: none.
  [[nodiscard]] int cancelled_by() const { return cancelled_by_; }

 private:
  [[nodiscard]] std::optional<int> await_answer();
  [[nodiscard]] std::optional<int> handle_signals();
  int cancel(int signal);
  int refused(const Error& error);
  [[nodiscard]] bool queued() const { return loop_.pawld.machine().position(acquire_).has_value(); }

  // Who holds the lock is shown while waiting: INSPECT of each lock until one is held, then STATUS.
  void show_progress_if_due();
  void ask_next();
  void on_answer(const Result<wire::Value>& answer);
  void show(const std::string& obstacle);

  Console& console_;
  RunLoop& loop_;
  const RunRequest& request_;
  const RunReporter& reporter_;
  client::CallId acquire_{};
  std::optional<Result<client::GrantedLease>> answer_;
  client::CallId query_{};           // INSPECT or STATUS, in flight
  std::size_t next_lock_ = 0;        // the one it asks about; behind the last: STATUS
  std::optional<wire::Value> lock_;  // the last answer to INSPECT
  Instant show_at_{};
  int cancelled_by_ = 0;
};

// "pawld was restored …" while nothing is granted after a restore; nullopt when that is not so.
// `status` is the reply to STATUS.
[[nodiscard]] std::optional<std::string> restoring_text(const wire::Value& status);

}  // namespace pawl::cli
