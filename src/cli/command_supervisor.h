// The process between `pawl run` and CMD (docs/decisions/0006): parent of CMD, subreaper for
// everything that CMD starts, and the one that kills all of it when pawl cannot, because pawl is
// stopped, frozen or gone.
//
// Both share one page of memory, so that neither waits for the other. After each change the
// supervisor sends SIGCHLD to pawl, which looks.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_cgroup.h"
#include "cli/signals.h"
#include "client/time.h"

namespace pawl::cli {

enum class ExecState : std::uint8_t { kPending, kDone, kNotForked, kFailed };

// Written by one side each, read by the other.
struct Supervision {
  // By pawl: when everything must be killed, in nanoseconds of CLOCK_BOOTTIME.
  std::atomic<std::int64_t> kill_at;

  // By the supervisor.
  std::atomic<pid_t> command;  // its pid
  std::atomic<ExecState> exec;
  std::atomic<int> exec_error;  // an errno
  std::atomic<int> stopped_by;  // the signal that stopped CMD; 0: it runs, or pawl has seen it
  std::atomic<int> still_stopped_by;  // the same until it is continued
  std::atomic<bool> ended;
  std::atomic<bool> none_left;  // of what CMD started; stays so. Set before `ended` of the last one
  std::atomic<int> wait_status;  // as of waitpid()

  // By CMD before its exec.
  std::atomic<bool> in_cgroup;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<ExecState>::is_always_lock_free);

struct SupervisorPlan {
  std::vector<char*> arguments, environment;
  const Signals& signals;
  const std::optional<CommandCgroup>& cgroup;
  pid_t pawl;
  int pawl_lives;  // a pipe that is closed when pawl is gone
};

// In the forked process. Everything but what `plan` and `shared` refer to is closed.
[[noreturn]] void supervise(const SupervisorPlan& plan, Supervision& shared);

}  // namespace pawl::cli
