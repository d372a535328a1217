// The signals that `pawl run` handles: read from a descriptor in the loop, instead of interrupting
// it anywhere.
//
// Signals that were ignored when pawl started (nohup) stay ignored. SIGPIPE is ignored in pawl but
// not in the command: a closed stderr must not end a holder.
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
  // The signals that arrived since the last call.
  [[nodiscard]] std::vector<int> take();
  // Restores everything as pawl found it. Called in a forked child right before it becomes CMD.
  void restore() const;

 private:
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};
  struct sigaction inherited_child_ {};
  UniqueFd fd_;
};

// Whether an unhandled signal ends, or stops, a process.
[[nodiscard]] bool ends_a_process(int signal);
[[nodiscard]] bool stops_a_process(int signal);

// The signals that end a program which has to clean up first, such as a drill: read from a
// descriptor that can be polled. Signals that were ignored when pawl started (nohup) stay ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable once a signal has arrived.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // The signal that arrived; 0: none.
  [[nodiscard]] int take();

 private:
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};  // A closed pipe is an error for the writer.
  UniqueFd fd_;
};

}  // namespace pawl::cli
