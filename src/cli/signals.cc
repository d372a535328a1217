#include "cli/signals.h"

#include <sys/signalfd.h>

#include "base/assert.h"

namespace pawl::cli {
namespace {

constexpr int kTaken[] = {SIGHUP,    SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1, SIGUSR2,   SIGALRM,
                          SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,   SIGXCPU, SIGSTKFLT, SIGCONT,
                          SIGTSTP,   SIGTTIN, SIGTTOU, SIGWINCH, SIGURG,  SIGCHLD};

bool ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;  // Else the kernel would reap CMD, and its exit code with it.
  PAWL_ASSERT(sigaction(SIGCHLD, &action, &inherited_child_) == 0);
  action.sa_handler = SIG_IGN;
  PAWL_ASSERT(sigaction(SIGPIPE, &action, &inherited_pipe_) == 0);
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : kTaken) {
    if (!ignored(signal)) sigaddset(&taken, signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    if (!ignored(signal)) sigaddset(&taken, signal);
  }
  PAWL_ASSERT(sigprocmask(SIG_BLOCK, &taken, &inherited_mask_) == 0);
  fd_ = UniqueFd(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
}

Signals::~Signals() {
  restore();
}

std::vector<int> Signals::take() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

void Signals::restore() const {
  sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  sigaction(SIGCHLD, &inherited_child_, nullptr);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

bool stops_a_process(int signal) {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

bool ends_a_process(int signal) {
  return signal != SIGCONT && signal != SIGWINCH && signal != SIGURG && signal != SIGCHLD &&
         !stops_a_process(signal);
}

// --- StopSignals ---------------------------------------------------------------------------------

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
