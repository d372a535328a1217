#include "cli/command_supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/unique_fd.h"
#include "cli/exit_codes.h"
#include "cli/process_tree.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;

// Between attempts to kill what is left.
constexpr Nanos kKillAgain = 50ms;
// A process that still exists then is not ours to kill, or hangs in the kernel.
constexpr Nanos kStuck = 5s;

// Rounds of KILL to children before other work is done.
constexpr int kKillRoundsMax = 1000;

// Then nothing of the command is left and nothing new can appear: an orphan becomes a child of its
// subreaper at once. A look at /proc does not tell that much: it can miss a process that forks and
// exits while it looks.
bool has_no_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

class Supervisor {
 public:
  Supervisor(const SupervisorPlan& plan, Supervision& shared) : plan_(plan), shared_(shared) {}

  void start_command();
  void run();

 private:
  [[noreturn]] void become_command(int error_in);
  void drop_inherited_descriptors();
  void read_exec_result();
  void reap();
  void kill_children();
  void kill_all();
  void kill_if_due();
  void arm_timer(client::Instant at);
  void finish();
  void tell_pawl() const { ::kill(plan_.pawl, SIGCHLD); }

  const SupervisorPlan& plan_;
  Supervision& shared_;
  const pid_t self_ = getpid();
  pid_t command_ = 0;
  UniqueFd exec_result_, children_, timer_;
};

void Supervisor::start_command() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    shared_.exec_error = errno;
    shared_.exec = ExecState::kNotForked;
    return tell_pawl();
  }
  exec_result_ = UniqueFd(ends[0]);
  UniqueFd error_in(ends[1]);
  command_ = fork();
  if (command_ == 0) become_command(error_in.get());
  if (command_ < 0) {
    shared_.exec_error = errno;
    shared_.exec = ExecState::kNotForked;
    exec_result_.reset();
  } else {
    shared_.command = command_;
  }
  tell_pawl();
}

void Supervisor::become_command(int error_in) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);            // For kill -9 of the supervisor.
  if (getppid() != self_) _exit(kExitFailed);  // It died before that took effect.
  if (plan_.cgroup) shared_.in_cgroup = plan_.cgroup->enter();
  plan_.signals.restore();
  execvpe(plan_.arguments.front(), plan_.arguments.data(), plan_.environment.data());
  const int error = errno;
  (void)!write(error_in, &error, sizeof(error));
  _exit(kExitNotFound);
}

// The connection to pawld must not stay open behind pawl's back, nor a pipe that someone reads.
void Supervisor::drop_inherited_descriptors() {
  std::vector<int> kept{plan_.pawl_lives, exec_result_.get(), children_.get(), timer_.get()};
  std::sort(kept.begin(), kept.end());
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (std::find(kept.begin(), kept.end(), fd) == kept.end()) dup2(null.get(), fd);
  }
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd < static_cast<int>(next)) continue;
    if (static_cast<unsigned>(fd) > next) close_range(next, static_cast<unsigned>(fd) - 1, 0);
    next = static_cast<unsigned>(fd) + 1;
  }
  close_range(next, ~0U, 0);
}

void Supervisor::run() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // The terminal's signals are for CMD.
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  children_ = UniqueFd(signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC));
  timer_ = UniqueFd(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  drop_inherited_descriptors();
  for (;;) {
    kill_if_due();
    reap();
    pollfd fds[] = {{plan_.pawl_lives, POLLIN, 0},
                    {children_.get(), POLLIN, 0},
                    {timer_.get(), POLLIN, 0},
                    {exec_result_.get(), POLLIN, 0}};
    if (poll(fds, 4, -1) < 0) continue;  // Interrupted by stop and continue.
    if (fds[0].revents != 0) return finish();
    if (fds[1].revents != 0) {
      signalfd_siginfo info{};
      while (read(children_.get(), &info, sizeof(info)) > 0) {
      }
    }
    if (fds[3].revents != 0) read_exec_result();
  }
}

void Supervisor::read_exec_result() {
  if (!exec_result_) return;
  int error = 0;
  const bool failed = read(exec_result_.get(), &error, sizeof(error)) == sizeof(error);
  exec_result_.reset();
  shared_.exec_error = error;
  shared_.exec = failed ? ExecState::kFailed : ExecState::kDone;
  tell_pawl();
}

void Supervisor::reap() {
  bool changed = false, ended = false;
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid < 0 && errno == ECHILD && !shared_.none_left) shared_.none_left = changed = true;
    if (pid <= 0) break;
    if (pid != command_) continue;  // An orphan.
    changed = true;
    if (WIFSTOPPED(status)) {
      shared_.stopped_by = shared_.still_stopped_by = WSTOPSIG(status);
    } else if (WIFCONTINUED(status)) {
      shared_.stopped_by = shared_.still_stopped_by = 0;
    } else {
      read_exec_result();  // Else pawl could see the end before the failure.
      shared_.wait_status = status;
      command_ = 0;
      ended = true;
    }
  }
  if (ended) shared_.ended = true;
  if (changed) tell_pawl();
}

// Whoever loses its parent becomes a child of this process at once. So this reaches everything, and
// is quick enough for processes that fork and exit without a pause. A child that is not reaped keeps
// its number: no other process can be hit.
void Supervisor::kill_children() {
  for (int round = 0; round < kKillRoundsMax; ++round) {
    reap();
    bool sent = false;
    for (const pid_t child : children_of_this_process()) sent |= ::kill(child, SIGKILL) == 0;
    if (!sent) return;
  }
}

void Supervisor::kill_all() {
  if (plan_.cgroup) plan_.cgroup->kill();
  kill_children();
  // Below a process that may not be killed.
  if (!has_no_children()) (void)kill_descendants(getpid(), 0);
}

void Supervisor::kill_if_due() {
  const client::Instant at{Nanos(shared_.kill_at.load())};
  if (client::boot_now() < at) return arm_timer(at);
  kill_all();
  arm_timer(has_no_children() ? client::kNever : client::boot_now() + kKillAgain);
}

void Supervisor::arm_timer(client::Instant at) {
  itimerspec when{};
  if (at != client::kNever) {
    const Nanos due = std::max(at.time_since_epoch(), Nanos(1));
    when.it_value = {static_cast<time_t>(due / 1s), static_cast<long>((due % 1s).count())};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

// pawl is gone without an end of its own.
void Supervisor::finish() {
  const client::Instant end = client::boot_now() + kStuck;
  do {
    kill_all();
    reap();
    if (has_no_children()) break;
    poll(nullptr, 0, static_cast<int>(kKillAgain / 1ms));
  } while (client::boot_now() < end);
  if (plan_.cgroup) plan_.cgroup->remove();
}

}  // namespace

void supervise(const SupervisorPlan& plan, Supervision& shared) {
  prctl(PR_SET_NAME, "pawl-supervisor");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Supervisor supervisor(plan, shared);
  supervisor.start_command();
  supervisor.run();
  _exit(kExitOk);
}

}  // namespace pawl::cli
