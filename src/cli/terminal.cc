#include "cli/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace pawl::cli {

Terminal::Terminal() : fd_(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  if (!fd_) return;
  was_ours_ = foreground() == getpgrp();
  has_modes_ = was_ours_ && tcgetattr(fd_.get(), &modes_) == 0;
}

pid_t Terminal::foreground() const {
  return fd_ ? std::max(tcgetpgrp(fd_.get()), 0) : 0;
}

void Terminal::pass_to(pid_t group) const {
  if (fd_ && foreground() == getpgrp()) tcsetpgrp(fd_.get(), group);
}

void Terminal::recover() const {
  const pid_t group = foreground();
  if (!was_ours_ || group == 0 || group == getpgrp()) return;
  const bool gone = kill(-group, 0) != 0 && errno == ESRCH;
  if (gone) tcsetpgrp(fd_.get(), getpgrp());  // SIGTTOU is blocked here.
}

void Terminal::restore_modes() const {
  if (has_modes_ && foreground() == getpgrp()) tcsetattr(fd_.get(), TCSANOW, &modes_);
}

}  // namespace pawl::cli
