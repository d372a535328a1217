#include "cli/command_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/unique_fd.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

// /proc/self/mountinfo: id parent device root mountpoint options … - type source options
std::optional<std::string> mount_point() {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto separator = line.find(" - cgroup2 ");
    if (separator == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    if (root == "/") return point;
  }
  return std::nullopt;
}

// The line of version 2 in /proc/self/cgroup: "0::/path".
std::optional<std::string> own_path() {
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    // "/..": the mount shows another part of the tree than the one that we are in.
    if (line.starts_with("0::/") && !line.starts_with("0::/..")) return line.substr(3);
  }
  return std::nullopt;
}

bool write_text(const char* path, const char* text, std::size_t size) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text, size) == static_cast<ssize_t>(size);
}

}  // namespace

CommandCgroup::CommandCgroup(std::string path)
    : path_(std::move(path)), procs_(path_ + "/cgroup.procs"), kill_(path_ + "/cgroup.kill") {}

std::optional<CommandCgroup> CommandCgroup::create() {
  const auto mount = mount_point(), own = own_path();
  if (!mount || !own) return std::nullopt;
  // A pid alone is not unique: pid namespaces may share the tree.
  const CommandCgroup cgroup(fmt::format("{}{}{}pawl-run-{}-{:x}", *mount, *own,
                                         own->ends_with('/') ? "" : "/", getpid(),
                                         client::boot_now().time_since_epoch().count()));
  if (mkdir(cgroup.path_.c_str(), 0755) != 0) return std::nullopt;
  if (access(cgroup.kill_.c_str(), W_OK) == 0 && access(cgroup.procs_.c_str(), W_OK) == 0)
    return cgroup;
  cgroup.remove();
  return std::nullopt;
}

bool CommandCgroup::enter() const {
  return write_text(procs_.c_str(), "0", 1);
}

void CommandCgroup::kill() const {
  (void)write_text(kill_.c_str(), "1", 1);
}

bool CommandCgroup::has_processes() const {
  std::ifstream events(path_ + "/cgroup.events");
  for (std::string line; std::getline(events, line);) {
    if (line == "populated 1") return true;
  }
  return false;
}

void CommandCgroup::remove() const {
  std::error_code failed;
  std::vector<std::string> below;
  for (std::filesystem::recursive_directory_iterator entries(path_, failed), end;
       !failed && entries != end; entries.increment(failed)) {
    if (entries->is_directory(failed)) below.push_back(entries->path());
  }
  for (auto folder = below.rbegin(); folder != below.rend(); ++folder) rmdir(folder->c_str());
  rmdir(path_.c_str());
}

}  // namespace pawl::cli
