// Runner without a command: `pawl elect` stays, and whoever reads what it printed does the work.
#include <algorithm>
#include <csignal>

#include "cli/exit_codes.h"
#include "cli/runner.h"
#include "client/boot_clock.h"

namespace pawl::cli {

using client::boot_now;

int Runner::stay() {
  RunPlan plan(request_.times, held_.deadline, boot_now(), random_);
  bool announced = false;
  std::optional<int> code;
  while (!code) {
    const auto due =
        plan.advance(boot_now());  // First: who was frozen past the deadline learns it here.
    tell_why(plan);
    if (plan.stopping()) {
      code = plan.exit_code(kExitOk);
    } else if (!std::exchange(announced, true) && !request_.announce(held_)) {
      voice_.say(
          "stdout cannot be written, so nobody would learn of the election; the lease is released");
      code = kExitOutput;
    } else {
      code = heed_signals_while_staying();
    }
    if (code) break;
    if (due.renew) renew(plan, boot_now());
    pawld_.turn(nap(std::min(plan.next_timer(), pawld_.next_timer())));
    take_renewal(plan);
  }
  release(plan.why() == RunPlan::Why::kLost ? kLostPatience : kReleasePatience);
  return *code;
}

std::optional<int> Runner::heed_signals_while_staying() {
  for (const int signal : signals_.take()) {
    if (ends_a_process(signal)) return kExitSignalled + signal;
    if (stops_a_process(signal)) raise(SIGSTOP);
  }
  return std::nullopt;
}

}  // namespace pawl::cli
