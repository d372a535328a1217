#include "cli/command_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

Error no_cgroup(std::string why) {
  return {Code::kUnavailable, std::move(why)};
}

std::string_view system_text(int error) {
  return std::strerror(error);
}

bool write_text(const char* path, const char* text, std::size_t size) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text, size) == static_cast<ssize_t>(size);
}

}  // namespace

// /proc/self/cgroup: "0::/path" for version 2, "4:memory:/path" for each tree of version 1.
// /proc/self/mountinfo: id parent device root mountpoint options … - type source options
// A hybrid host has both versions; there version 2 is mounted at /sys/fs/cgroup/unified.
Result<std::string> own_cgroup(std::istream& cgroup, std::istream& mountinfo) {
  std::optional<std::string> path;
  for (std::string line; std::getline(cgroup, line) && !path;) {
    if (line.starts_with("0::/")) path = line.substr(3);
  }
  if (!path) return no_cgroup("this host has cgroups of version 1 only, or none");
  if (path->starts_with("/.."))
    return no_cgroup("the cgroup of this process is outside of what is mounted here");
  bool in_part = false;
  for (std::string line; std::getline(mountinfo, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    if (root == "/") return *path == "/" ? point : point + *path;
    in_part = true;
  }
  return no_cgroup(in_part ? "only a part of the cgroups of version 2 is mounted here"
                           : "cgroups of version 2 are not mounted here");
}

CommandCgroup::CommandCgroup(std::string path)
    : path_(std::move(path)), procs_(path_ + "/cgroup.procs"), kill_(path_ + "/cgroup.kill") {}

Result<CommandCgroup> CommandCgroup::create() {
  std::ifstream lines("/proc/self/cgroup"), mounts("/proc/self/mountinfo");
  const auto own = own_cgroup(lines, mounts);
  if (!own) return own.error();
  // A pid alone is not unique: pid namespaces may share the tree.
  CommandCgroup cgroup(fmt::format("{}/pawl-run-{}-{:x}", *own, getpid(),
                                   client::boot_now().time_since_epoch().count()));
  if (mkdir(cgroup.path_.c_str(), 0755) != 0)
    return no_cgroup(fmt::format("pawl cannot make one below {}: {}", *own, system_text(errno)));
  for (const std::string& file : {cgroup.kill_, cgroup.procs_}) {
    if (access(file.c_str(), W_OK) == 0) continue;
    const int error = errno;
    cgroup.remove();
    if (error == ENOENT) return no_cgroup("the kernel has no cgroup.kill, which Linux 5.14 has");
    return no_cgroup(fmt::format("{}: {}", file, system_text(error)));
  }
  return cgroup;
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
