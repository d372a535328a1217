// CMD and everything it starts, in whatever process group or session: pawl's side of the supervisor
// (command_supervisor.h), which is the parent of CMD. docs/decisions/0006 says why it is so.
//
// Nothing here waits, except for kill(): up to a few listings of /proc.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/command_cgroup.h"
#include "cli/command_supervisor.h"
#include "cli/process_tree.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace pawl::cli {

class CommandProcess {
 public:
  struct End {
    int code = 0;    // as in a shell
    int signal = 0;  // the one that ended it; 0: none
  };

  CommandProcess() = default;
  // Ends the supervisor. Whatever still runs is not killed by this.
  ~CommandProcess();
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  // Starts it in our process group, with our stdin. Returns at once, with 0 or an errno; whether
  // CMD could be executed is known later. Everything is killed at `kill_at`, whatever happens to
  // this process, unless set_kill_at() moves it.
  int start(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const Signals& signals, client::Instant kill_at);
  void set_kill_at(client::Instant at);

  [[nodiscard]] ExecState exec_state() const;
  [[nodiscard]] int exec_error() const { return shared_->exec_error; }
  [[nodiscard]] pid_t pid() const { return shared_->command; }
  // The cgroup that everything is in; nullptr: only the descendants are known.
  [[nodiscard]] const CommandCgroup* cgroup() const;
  // Why there is none.
  [[nodiscard]] const std::string& no_cgroup_reason() const { return no_cgroup_reason_; }

  // nullopt while it runs.
  [[nodiscard]] std::optional<End> ended();
  // The signal that stopped it, such as SIGTSTP; 0: none. Once for each stop.
  [[nodiscard]] int take_stop() { return shared_->stopped_by.exchange(0); }
  // The signal by which it is stopped at present; 0: it is not.
  [[nodiscard]] int stopped_by() const { return shared_->still_stopped_by; }
  // Whether anything that it started still runs, or itself.
  [[nodiscard]] bool lives() const;
  // Whether this process is CMD, or was started by it.
  [[nodiscard]] bool includes(pid_t pid) const;

  // To the processes that are in our process group.
  void forward(int signal) const;
  // TERM to everything, also what is stopped.
  void terminate() const;
  // Returns those that did not permit it.
  std::vector<TreeProcess> kill();
  // What still runs.
  [[nodiscard]] std::vector<TreeProcess> survivors() const;
  // For a CMD that `signal` stopped: stops everything else of it, then this process, and continues
  // all when the shell continues this process. Does not stop when nobody could continue it. Whether
  // CMD is continued now.
  bool suspend(int signal, const Terminal& terminal) const;

  void reap() const { reap_orphans(supervisor_); }

 private:
  [[nodiscard]] bool is_supervised() const;

  struct Unmap {
    void operator()(Supervision* shared) const;
  };

  std::unique_ptr<Supervision, Unmap> shared_;
  std::optional<CommandCgroup> cgroup_;
  std::string no_cgroup_reason_ = "it could not be entered";
  pid_t supervisor_ = 0;
  UniqueFd lives_;  // The supervisor sees when it is closed.
};

// Whether this program runs as another user than ours, so that it may refuse our signals. Searched
// in PATH like execvp() does.
[[nodiscard]] bool changes_user(const std::string& program);

}  // namespace pawl::cli
