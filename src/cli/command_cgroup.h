// A cgroup (version 2) for CMD and everything it starts, where pawl may make one: as root, or in a
// subtree that was delegated to the user. Killing it reaches every process in it at once, whoever
// it runs as, and none can fork away.
#pragma once

#include <optional>
#include <string>

namespace pawl::cli {

class CommandCgroup {
 public:
  // Below the cgroup of this process. nullopt where that is not permitted, not mounted, or the
  // kernel has no cgroup.kill (before Linux 5.14).
  [[nodiscard]] static std::optional<CommandCgroup> create();

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
