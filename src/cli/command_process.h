// CMD and everything it starts that stays in its process group.
//
// Once CMD has ended it is not reaped before the group is forgotten: so the number of the group
// cannot come to mean someone else's while signals may still be sent to it.
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

  // Starts it in a group of its own, with our stdin, and in the foreground when we are. 0, or an
  // errno; `before_exec` tells a fork that failed from an exec that did.
  int start(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const Signals& signals, bool& before_exec);

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal_group(int signal) const;

  // How CMD ended, as a shell tells it; nothing while it lives.
  [[nodiscard]] std::optional<int> ended() const;
  // It was stopped, by Ctrl-Z for instance; told once.
  [[nodiscard]] bool was_stopped() const;
  // Whether anything in the group still runs.
  [[nodiscard]] bool group_lives() const;

  // The terminal, when we had it: to CMD's group, and back.
  void give_terminal() const;
  void take_terminal() const;
  [[nodiscard]] bool has_terminal() const { return terminal_; }

 private:
  pid_t pid_ = 0;
  bool terminal_ = false;  // stdin is a terminal, and was ours
};

}  // namespace pawl::cli
