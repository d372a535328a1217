#include "base/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/assert.h"

namespace pawl {
namespace {

constexpr int kNotExecuted = 127;
constexpr int kSignalled = 128;

Error failed_to(std::string_view action, int error) {
  return {Code::kUnavailable, "could not " + std::string(action) + ": " + std::strerror(error)};
}

void redirect(int fd, int to) {
  if (fd < 0) fd = ::open("/dev/null", O_RDWR);
  if (fd == to) {
    ::fcntl(fd, F_SETFD, 0);  // dup2() would keep close-on-exec.
  } else {
    ::dup2(fd, to);
  }
}

bool write_file(const char* path, std::string_view text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Everything the child needs after fork(), where it must not allocate.
struct ChildPlan {
  char* const* argv;
  const ProcessOptions& options;
  pid_t parent;
  int report;  // the write end of the pipe for a StartFailure
  std::string clock_offsets, uid_map, gid_map;
};

// Moves the caller, which has one thread, into a time namespace. A user other than root needs a
// user namespace around it.
bool set_clock_offset(const ChildPlan& plan) {
  if (::unshare(CLONE_NEWTIME) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) return false;
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", plan.uid_map);
    write_file("/proc/self/gid_map", plan.gid_map);
  }
  if (!write_file("/proc/self/timens_offsets", plan.clock_offsets)) return false;
  const UniqueFd space(::open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC));
  return space && ::setns(space.get(), CLONE_NEWTIME) == 0;
}

// Sent from the child to the parent when exec was not reached.
struct StartFailure {
  bool clock_offset = false;  // it was not set; else exec failed
  int error = 0;
};

[[noreturn]] void report_failure(int report, bool clock_offset) {
  const StartFailure failure{clock_offset, errno};
  static_cast<void>(!::write(report, &failure, sizeof(failure)));
  ::_exit(kNotExecuted);
}

// In the child, after fork(): async-signal-safe calls only.
[[noreturn]] void exec_child(const ChildPlan& plan) {
  ::setpgid(0, 0);
  if (plan.options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(kNotExecuted);  // It died before the prctl.
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGINT, SIGCHLD}) ::signal(signal, SIG_DFL);
  redirect(plan.options.in, STDIN_FILENO);
  redirect(plan.options.out, STDOUT_FILENO);
  if (plan.options.err >= 0) redirect(plan.options.err, STDERR_FILENO);
  if (plan.options.clock_offset.count() != 0) {
    if (!set_clock_offset(plan)) report_failure(plan.report, true);
    // Entering a user namespace clears it.
    if (plan.options.die_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  ::execvp(plan.argv[0], plan.argv);
  report_failure(plan.report, false);
}

std::string id_map(unsigned id) {
  return std::to_string(id) + " " + std::to_string(id) + " 1";
}

std::string clock_offsets(std::chrono::seconds offset) {
  const std::string seconds = std::to_string(offset.count());
  return "monotonic " + seconds + " 0\nboottime " + seconds + " 0\n";
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed_to("make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, 0);
  }
  return *this;
}

Result<Process> Process::start(const std::vector<std::string>& argv,
                               const ProcessOptions& options) {
  PAWL_ASSERT(!argv.empty());
  std::vector<char*> pointers;
  for (const std::string& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  auto report = make_pipe();
  if (!report) return report.error();
  const ChildPlan plan{pointers.data(),
                       options,
                       ::getpid(),
                       report->write.get(),
                       clock_offsets(options.clock_offset),
                       id_map(::geteuid()),
                       id_map(::getegid())};
  const pid_t child = ::fork();
  if (child < 0) return failed_to("start a process", errno);
  if (child == 0) exec_child(plan);
  Process process(child);
  ::setpgid(child, child);  // Parent and child both do it: either may run first.
  report->write.reset();
  StartFailure failure;
  ssize_t got = 0;
  do got = ::read(report->read.get(), &failure, sizeof(failure));
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(failure))) return process;
  return failed_to(
      failure.clock_offset ? "set the clock offset of a process" : "start " + argv.front(),
      failure.error);
}

bool Process::running() {
  if (pid_ == 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = 0;
  return false;
}

void Process::signal(int signal) const {
  if (pid_ != 0) ::kill(pid_, signal);
}

void Process::freeze() {
  PAWL_ASSERT(pid_ != 0);
  signal(SIGSTOP);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

void Process::resume() const {
  signal(SIGCONT);
}

void Process::kill() {
  if (pid_ == 0) return;
  ::kill(-pid_, SIGKILL);
  static_cast<void>(wait());
}

int Process::wait() {
  if (pid_ == 0) return 0;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace pawl
