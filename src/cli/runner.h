// One `pawl run`, or `pawl elect`: waits for the lock, then holds it while a command runs. A single
// thread and one poll loop. run_plan.h decides when to stop the command, client::Keeper when to
// renew the lease; this carries it out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_process.h"
#include "cli/console.h"
#include "cli/lock_wait.h"
#include "cli/run_plan.h"
#include "cli/run_reporter.h"
#include "cli/run_request.h"
#include "cli/terminal.h"
#include "client/keeper.h"

namespace pawl::cli {

class Runner {
 public:
  // Blocks the signals from here on.
  Runner(Console& console, RunRequest request, std::vector<client::Endpoint> endpoints);

  // Everything, from the first ACQUIRE to the exit code.
  int run();
  // The signal that ended the command or the wait; 0: none did, or the exit code says more.
  [[nodiscard]] int ended_by() const { return ended_by_; }

 private:
  void start_keeping();
  // --- With a command ----------------------------------------------------------------------------
  int hold();
  // nullopt when every guard was advanced; else the exit code.
  std::optional<int> advance_guards();
  // Sleeps until something happens, `until` at the latest, and handles everything but the end of
  // the command.
  void run_once(Instant until);
  // Starts it and waits until it was executed. nullopt then; else the exit code.
  std::optional<int> start(const std::vector<std::string>& words);
  int end(const CommandProcess::End& command);
  int end_without_command(int code);
  int not_started(int error, const std::string& program);
  // Before the command has run: releases the lease and reports what went wrong, also as JSON.
  int fail(const Error& error, int code);
  void report_start();
  void apply_plan();
  void kill_command(Instant now);
  void forward_signals();
  [[nodiscard]] bool should_forward(const ReceivedSignal& signal) const;
  void watch_command();
  void watch_stops();
  void give_up_if_stuck();

  // --- Without a command: `pawl elect` -----------------------------------------------------------
  int hold_without_command();
  [[nodiscard]] std::optional<int> handle_signals();

  // --- The lease ---------------------------------------------------------------------------------
  // Passes time and replies to the keeper, and its view of the lease to the plan.
  void update_lease();
  // What somebody has asked of us: reported, and passed on to the command as --on-ask says.
  void handle_asks();
  void report_loss();
  [[nodiscard]] std::string loss_text(Instant now);
  // Waits for the reason that the report waits for.
  void finish_loss_report();
  // Whether its reason is still to come.
  [[nodiscard]] bool awaits_reason(Instant now) const;
  void release(Millis timeout);
  [[nodiscard]] Instant next_timer() const;

  static constexpr Millis kReleaseTime{2'000};
  static constexpr Millis kLostReleaseTime{500};  // the lease is over anyway
  static constexpr Millis kReasonTime{500};       // to learn from pawld why it is over

  Console& console_;
  RunRequest request_;
  RunReporter reporter_;
  RunLoop loop_;
  client::Keeper keeper_;

  // Once granted.
  client::GrantedLease granted_{};
  client::LeaseNumber lease_{};
  std::optional<RunPlan> plan_;
  std::uint64_t renewals_reported_ = 0;
  Instant loss_seen_ = client::kNever;
  bool loss_reported_ = false;

  std::vector<std::string> environment_;  // of CMD
  Terminal terminal_;
  std::optional<CommandProcess> process_;
  std::optional<CommandProcess::End> ended_;  // how CMD ended
  bool over_ = false;                         // Nothing of it runs any more, or cannot be stopped.
  bool not_stopped_ = false;                  // the latter
  int stop_seen_ = 0;                // the signal by which CMD is stopped, as far as it was handled
  bool stopped_without_us_ = false;  // and pawl was not stopped with it
  Instant killed_at_ = client::kNever;
  std::vector<TreeProcess> refused_;  // did not permit KILL
  int ended_by_ = 0;
};

}  // namespace pawl::cli
