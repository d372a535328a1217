#include "cli/command_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <sstream>

#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
}

}  // namespace

void CommandProcess::Unmap::operator()(Supervision* shared) const {
  munmap(shared, sizeof(*shared));
}

CommandProcess::~CommandProcess() {
  if (supervisor_ > 0) {
    ::kill(supervisor_, SIGKILL);
    waitpid(supervisor_, nullptr, 0);
  }
  if (cgroup_) cgroup_->remove();
}

int CommandProcess::start(const std::vector<std::string>& words,
                          const std::vector<std::string>& environment, const Signals& signals,
                          client::Instant kill_at) {
  void* memory =
      mmap(nullptr, sizeof(Supervision), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  shared_.reset(new (memory) Supervision{});
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  const UniqueFd supervisor_end(ends[0]);
  lives_ = UniqueFd(ends[1]);
  set_kill_at(kill_at);
  if (auto cgroup = CommandCgroup::create()) {
    cgroup_ = *std::move(cgroup);
  } else {
    no_cgroup_reason_ = cgroup.error().detail;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // Behind the supervisor, should it be killed.
  const SupervisorPlan plan{.arguments = pointers(words),
                            .environment = pointers(environment),
                            .signals = signals,
                            .cgroup = cgroup_,
                            .pawl = getpid(),
                            .pawl_lives = supervisor_end.get()};
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    lives_.reset();
    supervise(plan, *shared_);
  }
  supervisor_ = child;
  return 0;
}

void CommandProcess::set_kill_at(client::Instant at) {
  shared_->kill_at = at.time_since_epoch().count();
}

ExecState CommandProcess::exec_state() const {
  return shared_->exec;
}

const CommandCgroup* CommandProcess::cgroup() const {
  return cgroup_ && shared_->in_cgroup ? &*cgroup_ : nullptr;
}

std::optional<CommandProcess::End> CommandProcess::ended() {
  if (shared_->ended) {
    const int status = shared_->wait_status;
    if (WIFEXITED(status)) return End{.code = WEXITSTATUS(status)};
    return End{.code = kExitSignalled + WTERMSIG(status), .signal = WTERMSIG(status)};
  }
  if (is_supervised() || shared_->ended) return std::nullopt;
  // Someone killed the supervisor, and the kernel CMD with it.
  return End{.code = kExitSignalled + SIGKILL};
}

bool CommandProcess::is_supervised() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(supervisor_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

std::vector<TreeProcess> CommandProcess::survivors() const {
  return descendants(getpid(), supervisor_);
}

bool CommandProcess::lives() const {
  if (shared_->none_left) return false;
  if (cgroup() != nullptr && cgroup()->has_processes()) return true;
  // The listing may have missed one; the supervisor knows.
  return !survivors().empty() || is_supervised();
}

bool CommandProcess::includes(pid_t pid) const {
  const auto all = survivors();
  return std::any_of(all.begin(), all.end(),
                     [pid](const TreeProcess& process) { return process.pid == pid; });
}

void CommandProcess::forward(int signal) const {
  const pid_t group = getpgrp();
  for (const TreeProcess& process : survivors()) {
    if (process.group != group) continue;
    (void)send_signal(process, signal, true);
    // A stopped process could not act on it.
    if (asks_to_end(signal) && process.is_stopped()) (void)send_signal(process, SIGCONT);
  }
}

void CommandProcess::terminate() const {
  for (const TreeProcess& process : survivors()) {
    (void)send_signal(process, SIGTERM, true);
    (void)send_signal(process, SIGCONT);
  }
}

std::vector<TreeProcess> CommandProcess::kill() {
  if (cgroup() != nullptr) cgroup()->kill();
  shared_->kill_at = 0;  // Long ago.
  ::kill(supervisor_, SIGCHLD);
  return kill_descendants(getpid(), supervisor_);
}

bool CommandProcess::suspend(int signal, const Terminal& terminal) const {
  const pid_t ours = getpgrp(), foreground = terminal.foreground();
  pid_t group = ours;  // of CMD, which is an interactive shell if it is not ours
  for (const TreeProcess& process : survivors()) {
    if (process.pid == pid()) group = process.group;
  }
  const std::vector<TreeProcess> stopped = stop_descendants(getpid(), supervisor_);
  const bool was_stopped = stop_this_process(signal);
  // To the shell that CMD is, after `fg`.
  if (foreground == group && group != ours) terminal.pass_to(group);
  // Not what was stopped before, such as a job of that shell.
  for (const TreeProcess& process : stopped) (void)send_signal(process, SIGCONT);
  // Someone else has sent SIGSTOP, and will send SIGCONT.
  if (!was_stopped && signal == SIGSTOP) return false;
  for (const TreeProcess& process : survivors()) {
    if (process.group == group || process.group == ours) (void)send_signal(process, SIGCONT);
  }
  return true;
}

bool changes_user(const std::string& program) {
  if (geteuid() == 0) return false;
  const auto is_foreign = [](const std::string& path) {
    struct stat file {};
    return stat(path.c_str(), &file) == 0 && (file.st_mode & S_ISUID) != 0 &&
           file.st_uid != geteuid();
  };
  if (program.find('/') != std::string::npos) return is_foreign(program);
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + program;
    if (access(file.c_str(), X_OK) == 0) return is_foreign(file);
  }
  return false;
}

}  // namespace pawl::cli
