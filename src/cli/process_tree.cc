#include "cli/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.h"
#include "cli/signals.h"

namespace pawl::cli {
namespace {

// A listing in which a parent ended between two reads is repeated at most this often.
constexpr int kListingsMax = 10;
// Rounds of SIGSTOP. Each one reaches all processes that existed when it began.
constexpr int kStopRoundsMax = 200;

// /proc/PID/stat: pid (name) state ppid pgrp …; the name may contain anything, so what follows the
// last ')' counts.
std::optional<TreeProcess> read_process(const std::string& pid) {
  const UniqueFd file(open(("/proc/" + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char text[1024];
  const ssize_t got = read(file.get(), text, sizeof(text) - 1);
  if (got <= 0) return std::nullopt;
  const std::string stat(text, static_cast<std::size_t>(got));
  const auto name_begin = stat.find('('), name_end = stat.rfind(')');
  if (name_begin == std::string::npos || name_end == std::string::npos) return std::nullopt;
  TreeProcess process{.pid = std::atoi(pid.c_str())};
  process.name = stat.substr(name_begin + 1, name_end - name_begin - 1);
  long threads = 0;
  if (std::sscanf(stat.c_str() + name_end + 1,
                  " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %lu",
                  &process.state, &process.parent, &process.group, &threads,
                  &process.started) != 5) {
    return std::nullopt;
  }
  // The first thread has ended, others run.
  if (process.state == 'Z' && threads > 1) process.state = 'R';
  return process;
}

// <sys/pidfd.h> of glibc 2.36 cannot be used from C++.
int open_pidfd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

int signal_pidfd(int fd, int signal, siginfo_t* info) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, fd, signal, info, 0));
}

bool has_ended(const TreeProcess& process) {
  return process.state == 'Z' || process.state == 'X';
}

using Listing = std::unordered_map<pid_t, TreeProcess>;

Listing list_processes() {
  Listing all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return all;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto process = read_process(name)) all.emplace(process->pid, std::move(*process));
  }
  return all;
}

enum class Place { kBelow, kElsewhere, kUnknown };

struct Position {
  Place place = Place::kUnknown;  // kUnknown: a process above it ended while the list was made.
  std::size_t depth = 0;          // below root; 0 is a child
};

Position position_of(const TreeProcess& process, pid_t root, const Listing& all) {
  pid_t parent = process.parent;
  for (std::size_t depth = 0; depth <= all.size(); ++depth) {
    if (parent == root) return {Place::kBelow, depth};
    if (parent == 0) return {Place::kElsewhere};
    const auto found = all.find(parent);
    if (found == all.end()) return {};
    parent = found->second.parent;
  }
  return {};
}

}  // namespace

std::vector<TreeProcess> descendants(pid_t root, pid_t except) {
  std::multimap<std::size_t, TreeProcess> found;  // by depth
  for (int listings = 0; listings < kListingsMax; ++listings) {
    found.clear();
    bool complete = true;
    const Listing all = list_processes();
    for (const auto& [pid, process] : all) {
      if (pid == except || has_ended(process)) continue;
      const Position position = position_of(process, root, all);
      if (position.place == Place::kBelow) found.emplace(position.depth, process);
      if (position.place == Place::kUnknown) complete = false;
    }
    if (complete) break;
  }
  std::vector<TreeProcess> list;
  for (auto& [depth, process] : found) list.push_back(std::move(process));
  return list;
}

std::vector<pid_t> children_of_this_process() {
  const std::string self = std::to_string(getpid());
  const UniqueFd file(
      open(("/proc/self/task/" + self + "/children").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; file && (got = read(file.get(), chunk, sizeof(chunk))) > 0;)
    text.append(chunk, static_cast<std::size_t>(got));
  std::vector<pid_t> found;
  std::istringstream words(text);
  for (pid_t pid = 0; words >> pid;) found.push_back(pid);
  return found;
}

Delivery send_signal(const TreeProcess& process, int signal, bool relayed) {
  const UniqueFd fd(open_pidfd(process.pid));
  if (!fd && errno == ESRCH) return Delivery::kGone;
  const auto now = read_process(std::to_string(process.pid));
  if (!now || now->started != process.started) return Delivery::kGone;
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = kRelayedSignal;
  // Without a pidfd (no descriptor left) by number: it was this process a moment ago.
  const int sent =
      fd ? signal_pidfd(fd.get(), signal, relayed ? &info : nullptr) : kill(process.pid, signal);
  if (sent == 0) return Delivery::kSent;
  return errno == EPERM ? Delivery::kNotPermitted : Delivery::kGone;
}

std::vector<TreeProcess> stop_descendants(pid_t root, pid_t except) {
  std::vector<TreeProcess> stopped;
  std::set<std::pair<pid_t, unsigned long>> done;  // by us, or not permitted
  for (int round = 0; round < kStopRoundsMax; ++round) {
    bool new_ones = false;
    for (const TreeProcess& process : descendants(root, except)) {
      if (process.is_stopped() || !done.emplace(process.pid, process.started).second) continue;
      if (send_signal(process, SIGSTOP) == Delivery::kSent) stopped.push_back(process);
      new_ones = true;
    }
    if (!new_ones) break;
  }
  return stopped;
}

std::vector<TreeProcess> kill_descendants(pid_t root, pid_t except) {
  (void)stop_descendants(root, except);
  std::vector<TreeProcess> refused;
  for (const TreeProcess& process : descendants(root, except)) {
    if (send_signal(process, SIGKILL) == Delivery::kNotPermitted) refused.push_back(process);
  }
  return refused;
}

void reap_orphans(pid_t except) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0 || info.si_pid == except) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace pawl::cli
