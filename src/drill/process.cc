#include "drill/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/assert.h"

namespace pawl::drill {
namespace {

constexpr int kNotExecuted = 127;
constexpr int kSignalled = 128;

Error could_not(std::string_view what, int error) {
  return {Code::kUnavailable, fmt::format("could not {}: {}", what, std::strerror(error))};
}

void use(int fd, int as) {
  if (fd < 0) fd = ::open("/dev/null", O_RDWR);
  if (fd == as) {
    ::fcntl(fd, F_SETFD, 0);  // dup2() would leave it to be closed at the exec.
  } else {
    ::dup2(fd, as);
  }
}

bool write_file(const char* path, const std::string& text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Texts that are made before fork(), because nothing may be allocated after it.
struct ClockTexts {
  explicit ClockTexts(Process::Clocks clocks)
      : offsets(fmt::format("monotonic {0} 0\nboottime {0} 0\n", clocks.count())),
        users(fmt::format("{0} {0} 1", ::geteuid())),
        groups(fmt::format("{0} {0} 1", ::getegid())) {}
  std::string offsets, users, groups;
};

// Moves the caller, which has one thread, into a time namespace; who is not root needs a user
// namespace around it.
bool set_clocks(const ClockTexts& texts) {
  if (::unshare(CLONE_NEWTIME) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) return false;
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", texts.users);
    write_file("/proc/self/gid_map", texts.groups);
  }
  if (!write_file("/proc/self/timens_offsets", texts.offsets)) return false;
  const UniqueFd space(::open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC));
  return space && ::setns(space.get(), CLONE_NEWTIME) == 0;
}

// What the child tells when it did not become what it should.
struct Mishap {
  bool clocks = false;  // it was them
  int error = 0;
};

[[noreturn]] void give_up(int tells, bool clocks) {
  const Mishap mishap{clocks, errno};
  static_cast<void>(!::write(tells, &mishap, sizeof(mishap)));
  ::_exit(kNotExecuted);
}

// In the child, after fork(): only what is safe there.
[[noreturn]] void become(char* const* words, const Process::Ends& ends, const ClockTexts* clocks,
                         pid_t parent, int tells) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotExecuted);  // It died before that took hold.
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int each : {SIGPIPE, SIGINT, SIGCHLD}) ::signal(each, SIG_DFL);
  use(ends.in, STDIN_FILENO);
  use(ends.out, STDOUT_FILENO);
  if (ends.error >= 0) use(ends.error, STDERR_FILENO);
  if (clocks != nullptr && !set_clocks(*clocks)) give_up(tells, true);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // A change of credentials clears it.
  ::execvp(words[0], words);
  give_up(tells, false);
}

int to_exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return could_not("make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, 0);
  }
  return *this;
}

Result<Process> Process::start(const std::vector<std::string>& words, const Ends& ends,
                               Clocks clocks) {
  PAWL_ASSERT(!words.empty());
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  auto told = make_pipe();
  if (!told) return told.error();
  const ClockTexts texts(clocks);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return could_not("start a process", errno);
  if (child == 0) {
    become(pointers.data(), ends, clocks == Clocks{} ? nullptr : &texts, parent, told->write.get());
  }
  Process process(child);
  ::setpgid(child, child);  // Both do it: neither may act before it is done.
  told->write.reset();
  Mishap mishap;
  ssize_t got = 0;
  do got = ::read(told->read.get(), &mishap, sizeof(mishap));
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(mishap))) return process;
  return could_not(mishap.clocks ? "give a process clocks of its own" : "start " + words.front(),
                   mishap.error);
}

bool Process::lives() {
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

void Process::wake() const {
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
  return to_exit_code(status);
}

}  // namespace pawl::drill
