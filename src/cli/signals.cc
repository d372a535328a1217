#include "cli/signals.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>
#include <string>

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

std::vector<ReceivedSignal> Signals::receive() {
  std::vector<ReceivedSignal> signals;
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    ReceivedSignal signal{.number = static_cast<int>(info.ssi_signo),
                          .sender = static_cast<pid_t>(info.ssi_pid)};
    if (info.ssi_code == SI_KERNEL) signal.origin = ReceivedSignal::Origin::kKernel;
    if (info.ssi_code == SI_QUEUE && info.ssi_int == kRelayedSignal)
      signal.origin = ReceivedSignal::Origin::kRelay;
    signals.push_back(signal);
  }
  return signals;
}

std::vector<int> Signals::take() {
  std::vector<int> numbers;
  for (const ReceivedSignal& signal : receive()) numbers.push_back(signal.number);
  return numbers;
}

void Signals::restore() const {
  sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  sigaction(SIGCHLD, &inherited_child_, nullptr);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

bool stops_a_process(int signal) {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

int signal_from_name(std::string_view name) {
  std::string word(name);
  for (char& letter : word) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  if (word.starts_with("SIG")) word.erase(0, 3);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && word == known) return signal;
  }
  return 0;
}

bool ends_a_process(int signal) {
  return signal != SIGCONT && signal != SIGWINCH && signal != SIGURG && signal != SIGCHLD &&
         !stops_a_process(signal);
}

bool stop_this_process(int signal) {
  if (signal == SIGSTOP) signal = SIGTSTP;  // SIGSTOP would stop us in an orphaned group, too.
  sigset_t only, before;
  sigemptyset(&only);
  sigaddset(&only, signal);
  struct sigaction action {
  }, inherited{};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, &inherited);
  ::raise(signal);  // Pending while it is blocked.
  sigprocmask(SIG_UNBLOCK, &only, &before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  sigaction(signal, &inherited, nullptr);
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGCONT) == 1;
}

void end_by_signal(int signal) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  prctl(PR_SET_DUMPABLE, 0);  // Also for a core pattern that is a pipe.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  ::raise(signal);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
}

bool is_passed_to_the_shell(int signal) {
  return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
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
