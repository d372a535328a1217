// Drives one `pawl run`, or `pawl elect`: a single thread and one poll loop over the socket, the
// signals and a timer on CLOCK_BOOTTIME, which also wakes it after a suspend. What to do when is
// decided by run_plan.h and client::Machine; this only does it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "cli/command_process.h"
#include "cli/console.h"
#include "cli/run_environment.h"
#include "cli/run_plan.h"
#include "cli/run_voice.h"
#include "cli/signals.h"
#include "client/poll_connection.h"

namespace pawl::cli {

struct RunRequest {
  client::AcquireCall call;
  std::optional<Millis> patience;  // nothing = wait for ever
  RunTimes times;
  RunNames names;
  std::vector<std::string> command;  // none: hold, until a signal or the lease ends it
  // Run one after the other before CMD, held to the same deadline: each advances a guard to our
  // token.
  std::vector<std::vector<std::string>> guard_commands;
  // Without a command: tells those who act on it that it is held. False: nobody could be told, so
  // it is given back.
  std::function<bool(const client::Held&)> announce;
  int not_acquired = 75;
  int report_fd = -1;
};

class Runner {
 public:
  // Blocks the signals from here on.
  Runner(Console& console, RunRequest request, std::vector<client::Endpoint> endpoints);

  // Everything, from the first ACQUIRE to the exit code.
  int run();

 private:
  // --- waiting: runner_wait.cc -------------------------------------------------------------------
  // The exit code when CMD is not to be started.
  std::optional<int> wait_for_lock();
  std::optional<int> await_answer();
  std::optional<int> heed_signals_while_waiting();
  int leave_queue(int signal);
  void watch_holder();
  void inspect_next();
  void take_inspection(const Result<wire::Value>& shown);
  void show_holder(const wire::Value& lock);
  int refused(const Error& error);

  // --- without a command: runner_stay.cc ---------------------------------------------------------
  int stay();
  [[nodiscard]] std::optional<int> heed_signals_while_staying();

  // --- running -----------------------------------------------------------------------------------
  int hold();
  // Nothing when every guard was advanced; else how to end.
  std::optional<int> fence(RunPlan& plan);
  // Sleeps until something happens, `look` at the latest, and does what is due of everything but
  // watching the command.
  void turn(RunPlan& plan, Instant look);
  int end(const RunPlan& plan, int code);
  int not_started(int error, bool before_exec);
  void carry_out(RunPlan& plan);
  void renew(const RunPlan& plan, Instant now);
  void begin_hold();
  void forward_signals();
  void take_renewal(RunPlan& plan);
  void watch_command(RunPlan& plan);
  void suspend_with_command();
  void tell_why(const RunPlan& plan);
  void release(Millis patience);

  static constexpr Millis kReleasePatience{2'000};
  static constexpr Millis kLostPatience{500};  // where the lease is over anyway

  // Sleeps until something happens or `until`; what poll says of the socket.
  short nap(Instant until);

  Console& console_;
  RunRequest request_;
  SystemRandom random_;
  Signals signals_;
  UniqueFd timer_;
  RunVoice voice_;
  client::PollConnection pawld_;
  std::optional<CommandProcess> process_;

  client::CallId acquire_{};
  std::optional<Result<client::Held>> answer_;
  client::CallId inspect_{};
  std::size_t inspected_ = 0;  // which lock
  Instant watch_at_{};

  client::Held held_{};
  std::vector<std::string> environment_;  // of CMD
  client::CallId renewal_{};
  std::optional<int> ended_;  // how CMD ended
  bool group_gone_ = false;   // and nothing of its group runs
  bool told_why_ = false;
  Instant killed_at_ = client::kNever;
};

}  // namespace pawl::cli
