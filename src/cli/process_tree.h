// The descendants of a process, found in /proc, and signals to them.
//
// A process whose parent ended becomes a child of the nearest subreaper above it, so everything
// that a subreaper has started stays below it, in whatever process group or session it is.
//
// Signals are sent over pidfds, after a second look at the process: a number that was reused is
// never hit. A process that runs as another user may refuse signals.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace pawl::cli {

struct TreeProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = 0;             // as in /proc/PID/stat
  unsigned long started = 0;  // in ticks since the boot; with the pid it names a process
  std::string name = {};

  [[nodiscard]] bool is_stopped() const { return state == 'T' || state == 't'; }
};

// The processes below `root` that run or are stopped, without `root` and `except`; parents before
// their children: a script whose child gets a signal first goes on, and may end with success before
// the signal reaches it. Empty when there is no /proc.
[[nodiscard]] std::vector<TreeProcess> descendants(pid_t root, pid_t except = 0);

// Those of the main thread, ended ones that are not reaped included. Empty where the kernel does not
// list them.
[[nodiscard]] std::vector<pid_t> children_of_this_process();

enum class Delivery { kSent, kGone, kNotPermitted };
// `relayed`: marks it as sent to all of a process group, so that a nested `pawl run` in it does not
// send it once more (signals.h).
Delivery send_signal(const TreeProcess& process, int signal, bool relayed = false);

// SIGSTOP to everything below `root`, until no new process appears: a process that forks cannot
// outrun it. Returns those that were not stopped before.
std::vector<TreeProcess> stop_descendants(pid_t root, pid_t except);

// Stops, then kills everything below `root`. Returns those that did not permit it.
std::vector<TreeProcess> kill_descendants(pid_t root, pid_t except);

// Reaps the children that have ended, which are orphans that a subreaper or pid 1 was given; not
// `except`.
void reap_orphans(pid_t except = 0);

}  // namespace pawl::cli
