#include "cli/command_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

// /proc/PID/stat: pid (name) state ppid pgrp …; the name may contain anything, so what follows the
// last ')' counts.
bool runs_in_group(const std::filesystem::path& stat, pid_t group) {
  std::ifstream file(stat);
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  char state = 0;
  int parent = 0, pgrp = 0;
  if (std::sscanf(text.c_str() + name_end + 1, " %c %d %d", &state, &parent, &pgrp) != 3)
    return false;
  return pgrp == group && state != 'Z' && state != 'X';
}

bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

CommandProcess::~CommandProcess() {
  if (pid_ > 0) waitpid(pid_, nullptr, WNOHANG);
}

int CommandProcess::start(const std::vector<std::string>& words,
                          const std::vector<std::string>& environment, const Signals& signals,
                          bool& before_exec) {
  before_exec = true;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  const UniqueFd error_out(ends[0]);
  UniqueFd error_in(ends[1]);
  const auto arguments = pointers(words), variables = pointers(environment);
  terminal_ = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    setpgid(0, 0);
    if (terminal_) tcsetpgrp(STDIN_FILENO, getpid());  // SIGTTOU is blocked here.
    prctl(PR_SET_PDEATHSIG, SIGKILL);             // For kill -9 of pawl; reaches CMD itself only.
    if (getppid() != parent) _exit(kExitFailed);  // pawl died before that took effect.
    signals.restore();
    execvpe(arguments.front(), arguments.data(), variables.data());
    const int error = errno;
    (void)!write(error_in.get(), &error, sizeof(error));
    _exit(kExitNotFound);
  }
  pid_ = child;
  setpgid(child, child);  // In both processes: neither may continue before it is done.
  error_in.reset();
  before_exec = false;
  int error = 0;
  ssize_t got = 0;
  do got = read(error_out.get(), &error, sizeof(error));
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

void CommandProcess::signal_group(int signal) const {
  if (pid_ > 0) kill(-pid_, signal);
}

std::optional<int> CommandProcess::ended() const {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return kExitFailed;
  if (info.si_pid == 0) return std::nullopt;
  return info.si_code == CLD_EXITED ? info.si_status : kExitSignalled + info.si_status;
}

bool CommandProcess::was_stopped() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0;
}

bool CommandProcess::group_lives() const {
  std::error_code failed;
  std::filesystem::directory_iterator entries("/proc", failed);
  if (failed)
    // Without /proc the group cannot be listed; the caller's last KILL reaches it all the same.
    return false;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    if (failed) break;
    const auto& path = entries->path();
    if (is_number(path.filename().string()) && runs_in_group(path / "stat", pid_)) return true;
  }
  return false;
}

void CommandProcess::give_terminal() const {
  if (terminal_ && tcgetpgrp(STDIN_FILENO) == getpgrp()) tcsetpgrp(STDIN_FILENO, pid_);
}

void CommandProcess::take_terminal() const {
  if (terminal_) tcsetpgrp(STDIN_FILENO, getpgrp());
}

}  // namespace pawl::cli
