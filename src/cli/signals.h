// The signals that `pawl run` takes over: read from a descriptor in the loop, instead of
// interrupting it anywhere.
//
// What was ignored when pawl started (nohup) stays ignored. SIGPIPE is ignored in pawl alone: a
// closed stderr must not end a holder.
#pragma once

#include <csignal>
#include <vector>

#include "base/unique_fd.h"

namespace pawl::cli {

class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // False when the kernel gave no descriptor.
  [[nodiscard]] bool ready() const { return static_cast<bool>(fd_); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // What has come since the last look.
  [[nodiscard]] std::vector<int> take();
  // In a forked child, right before it becomes CMD: everything as pawl found it.
  void give_back() const;

 private:
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};
  struct sigaction inherited_child_ {};
  UniqueFd fd_;
};

// Whether a signal that nobody handles ends a process.
[[nodiscard]] bool ends_a_process(int signal);
[[nodiscard]] bool stops_a_process(int signal);

}  // namespace pawl::cli
