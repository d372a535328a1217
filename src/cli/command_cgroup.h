// A cgroup (version 2) for CMD and everything it starts, where pawl may make one: as root, or in a
// subtree that was delegated to the user. Killing it reaches every process in it at once, whoever
// it runs as, and none can fork away.
#pragma once

#include <istream>
#include <string>

#include "pawl/result.h"

namespace pawl::cli {

// The folder of this process in the tree of version 2, from /proc/self/cgroup and
// /proc/self/mountinfo. kUnavailable says why there is none, as on hosts with version 1 only.
[[nodiscard]] Result<std::string> own_cgroup(std::istream& cgroup, std::istream& mountinfo);

class CommandCgroup {
 public:
  // Below the cgroup of this process. kUnavailable says why not: version 2 is not mounted, it is not
  // permitted, or the kernel has no cgroup.kill (before Linux 5.14).
  [[nodiscard]] static Result<CommandCgroup> create();

  [[nodiscard]] const std::string& path() const { return path_; }
  // Moves the calling process into it. Safe between fork and exec.
  [[nodiscard]] bool enter() const;
  void kill() const;
  // Whether a process is in it, or in one below it.
  [[nodiscard]] bool has_processes() const;
  // With those below it, which nested runs may have left. Fails while processes are in it.
  void remove() const;

 private:
  explicit CommandCgroup(std::string path);

  std::string path_, procs_, kill_;
};

}  // namespace pawl::cli
