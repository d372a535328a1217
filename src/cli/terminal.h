// The controlling terminal of `pawl run`, if it has one.
//
// CMD is in pawl's own process group, so the terminal is not handed over. CMD may take it for a
// group of its own, as an interactive shell does. When such a shell is killed, nobody gives the
// terminal back, and its modes stay as the shell had set them.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "base/unique_fd.h"

namespace pawl::cli {

class Terminal {
 public:
  // Remembers whether our group has the terminal, and its modes.
  Terminal();

  [[nodiscard]] bool exists() const { return static_cast<bool>(fd_); }
  // The group in the foreground; 0: none.
  [[nodiscard]] pid_t foreground() const;
  // Gives it to `group` if our group has it now.
  void pass_to(pid_t group) const;
  // Takes it back if our group had it and the group that has it now is gone.
  void recover() const;
  // As they were. For a command that was killed; only in the foreground.
  void restore_modes() const;

 private:
  UniqueFd fd_;
  bool was_ours_ = false;
  bool has_modes_ = false;
  termios modes_{};
};

}  // namespace pawl::cli
