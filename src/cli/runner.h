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
#include "client/keeper.h"

namespace pawl::cli {

class Runner {
 public:
  // Blocks the signals from here on.
  Runner(Console& console, RunRequest request, std::vector<client::Endpoint> endpoints);

  // Everything, from the first ACQUIRE to the exit code.
  int run();

 private:
  void start_keeping();
  // --- With a command ----------------------------------------------------------------------------
  int hold();
  // nullopt when every guard was advanced; else the exit code.
  std::optional<int> advance_guards();
  // Sleeps until something happens, `until` at the latest, and handles everything but the end of
  // the command.
  void run_once(Instant until);
  int end(int code);
  int not_started(int error, bool before_exec);
  void apply_plan();
  void forward_signals();
  void watch_command();
  void suspend_with_command();

  // --- Without a command: `pawl elect` -----------------------------------------------------------
  int hold_without_command();
  [[nodiscard]] std::optional<int> handle_signals();

  // --- The lease ---------------------------------------------------------------------------------
  // Passes time and replies to the keeper, and its view of the lease to the plan.
  void update_lease();
  void report_loss();
  void release(Millis timeout);
  [[nodiscard]] Instant next_timer() const;

  static constexpr Millis kReleaseTime{2'000};
  static constexpr Millis kLostReleaseTime{500};  // the lease is over anyway

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
  bool loss_reported_ = false;

  std::vector<std::string> environment_;  // of CMD
  std::optional<CommandProcess> process_;
  std::optional<int> ended_;  // how CMD ended
  bool group_gone_ = false;   // no process of its group runs any more
  Instant killed_at_ = client::kNever;
};

}  // namespace pawl::cli
