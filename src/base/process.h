// A child process with one owner: it is killed when its Process is destroyed.
//
//   auto pipe = make_pipe();
//   auto child = Process::start({"cat"}, {.in = pipe->read.get()});
//   child->freeze();
//   …
//   child->resume();
//   const int exit_code = child->wait();
//
// The child has its own process group, so a Ctrl-C on the terminal reaches the parent only, which
// then stops its children in order. No signal is blocked in the child, and SIGPIPE, SIGINT and
// SIGCHLD have their default actions, whatever the parent has set.
//
// Not for `pawl run`: its command shares the terminal, must be stoppable with Ctrl-Z, and is stopped
// with everything that it started (cli/command_process.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "pawl/result.h"

namespace pawl {

struct ProcessOptions {
  // Descriptors that become the child's stdin, stdout and stderr. -1: /dev/null; for `err`, the
  // parent's stderr.
  int in = -1;
  int out = -1;
  int err = -1;
  // Offset of the child's monotonic and boot clocks from ours, as on a machine that was booted at
  // another time. Needs a time namespace: root, or user namespaces.
  std::chrono::seconds clock_offset{};
  // The kernel kills the child when the thread that started it ends, even by kill -9 of the whole
  // process. So start it from a thread that lives as long as the child shall.
  bool die_with_parent = true;
};

// Used by one thread.
class Process {
 public:
  Process() = default;
  ~Process() { kill(); }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Process& operator=(Process&& other) noexcept;

  // Starts argv[0], which is searched in PATH unless it contains a slash. Returns once the program
  // runs. kUnavailable: it could not be started, or the clock offset could not be set; the detail
  // says why.
  static Result<Process> start(const std::vector<std::string>& argv,
                               const ProcessOptions& options = {});

  // 0: not started, or already reaped.
  [[nodiscard]] pid_t pid() const { return pid_; }
  // False once it has ended; reaps it then.
  [[nodiscard]] bool running();
  // To the process alone, not to its group. Does nothing after it was reaped.
  void signal(int signal) const;
  // SIGSTOP; returns once the process has stopped.
  void freeze();
  // SIGCONT.
  void resume() const;
  // SIGKILL to the whole group; returns once the process is gone. Does nothing after it was reaped.
  void kill();
  // Waits until it ends and returns its exit code, or 128 + the signal that killed it. 0 if there
  // is no process.
  int wait();

 private:
  explicit Process(pid_t pid) : pid_(pid) {}

  pid_t pid_ = 0;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
// Both ends are close-on-exec; ProcessOptions passes one of them to a child.
[[nodiscard]] Result<Pipe> make_pipe();

}  // namespace pawl
