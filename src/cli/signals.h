// The signals that `pawl run` handles: read from a descriptor in the loop, instead of interrupting
// it anywhere.
//
// Signals that were ignored when pawl started (nohup) stay ignored. SIGPIPE is ignored in pawl but
// not in the command: a closed stderr must not end a holder.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace pawl::cli {

// In the siginfo of a signal that `pawl run` passes on: all of its process group gets it.
inline constexpr int kRelayedSignal = 0x7061776c;

struct ReceivedSignal {
  enum class Origin : std::uint8_t {
    kKernel,   // such as Ctrl-C: sent to all of a process group
    kRelay,    // by another `pawl run` around this one, to all of our process group
    kProcess,  // to us, or to a group that we are in
  };

  int number = 0;
  Origin origin = Origin::kProcess;
  pid_t sender = 0;  // with kProcess
};

class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // False when the kernel gave no descriptor.
  [[nodiscard]] bool ready() const { return static_cast<bool>(fd_); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // The signals that arrived since the last call, and where they came from.
  [[nodiscard]] std::vector<ReceivedSignal> receive();
  // The same, their numbers.
  [[nodiscard]] std::vector<int> take();
  // Restores everything as pawl found it. Called in a forked child right before it becomes CMD.
  void restore() const;

 private:
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};
  struct sigaction inherited_child_ {};
  UniqueFd fd_;
};

// "TERM", "SIGTERM" or "term" → SIGTERM; 0 when there is no such signal.
[[nodiscard]] int signal_from_name(std::string_view name);

// Whether an unhandled signal ends, or stops, a process.
[[nodiscard]] bool ends_a_process(int signal);
[[nodiscard]] bool stops_a_process(int signal);

// Stops this process as `signal` would have if it were not blocked; for SIGSTOP as SIGTSTP would.
// Returns true when it was continued; false when it did not stop, because no shell could have
// continued it (an orphaned process group).
bool stop_this_process(int signal);

// Ends this process by `signal`, with its default action and without a core file. Returns if that
// is not possible (pid 1).
void end_by_signal(int signal);
// Whether pawl ends by this signal when it ended the command or the wait. For other signals it
// exits with 128 + N.
[[nodiscard]] bool is_passed_to_the_shell(int signal);

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
