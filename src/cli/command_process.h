// CMD and everything it starts that stays in its process group.
//
// CMD is not reaped before the group is gone: until then the kernel cannot reuse the number of the
// group, and signals cannot reach other processes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/signals.h"

namespace pawl::cli {

class CommandProcess {
 public:
  CommandProcess() = default;
  ~CommandProcess();
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  // Starts it in its own group, with our stdin, and in the foreground when we are. Returns 0 or an
  // errno; `before_exec` is true when fork failed, and false when exec did.
  int start(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const Signals& signals, bool& before_exec);

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal_group(int signal) const;

  // The exit code of CMD as in a shell; nullopt while it runs.
  [[nodiscard]] std::optional<int> ended() const;
  // Whether it was stopped, such as by Ctrl-Z; true once.
  [[nodiscard]] bool was_stopped() const;
  // Whether anything in the group still runs.
  [[nodiscard]] bool group_lives() const;

  // Pass the terminal, if we had it, to CMD's group and back.
  void give_terminal() const;
  void take_terminal() const;
  [[nodiscard]] bool has_terminal() const { return terminal_; }

 private:
  pid_t pid_ = 0;
  bool terminal_ = false;  // stdin is a terminal, and was ours
};

}  // namespace pawl::cli
