#include "cli/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"

namespace pawl::cli {

StopSignals::StopSignals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  PAWL_ASSERT(sigaction(SIGPIPE, &ignore, &inherited_pipe_) == 0);
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(&taken, signal);
  }
  PAWL_ASSERT(sigprocmask(SIG_BLOCK, &taken, &inherited_mask_) == 0);
  fd_ = UniqueFd(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
}

StopSignals::~StopSignals() {
  sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

int StopSignals::take() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return 0;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace pawl::cli
