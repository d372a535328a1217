// A child of the drill: a worker, or a pawld. It is gone when this is, and when the drill is
// killed.
//
// It has a process group of its own, so that a Ctrl-C on the terminal reaches the drill alone,
// which then puts everything away in order; and no signal is blocked in it, whatever the drill
// blocks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "pawl/result.h"

namespace pawl::drill {

class Process {
 public:
  struct Ends {  // what becomes its stdin, stdout and stderr; those that are not set are /dev/null,
    int in = -1;     //
    int out = -1;    //
    int error = -1;  // except stderr, which is ours
  };

  // How far its monotonic and boot clocks are from ours: those of a machine that was started at
  // another time.
  using Clocks = std::chrono::seconds;

  Process() = default;
  ~Process() { kill(); }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Process& operator=(Process&& other) noexcept;

  // The first word is looked for in PATH, unless it has a slash. Call it from the thread that lives
  // longest: when that ends the kernel kills the child. kUnavailable: it could not be started, and
  // why; not every machine allows clocks of one's own (a time namespace).
  static Result<Process> start(const std::vector<std::string>& words, const Ends& ends,
                               Clocks clocks = {});

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Whether it has not ended yet; reaps it if it has.
  [[nodiscard]] bool lives();
  void signal(int signal) const;
  // SIGSTOP; returns when it has stopped.
  void freeze();
  void wake() const;
  // SIGKILL to all of its group; returns when it is gone. Nothing when it is already.
  void kill();
  // Waits for it to end by itself. How it ended, as a shell tells it.
  int wait();

 private:
  explicit Process(pid_t pid) : pid_(pid) {}

  pid_t pid_ = 0;  // 0: none, or reaped
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
// Neither end passes to children, unless it is made one of their Ends.
[[nodiscard]] Result<Pipe> make_pipe();

}  // namespace pawl::drill
