// The signals by which people end a program that has something to put away first: read from a
// descriptor, which can be polled for, instead of ending it at once. What was ignored when pawl
// started (nohup) stays ignored.
#pragma once

#include <csignal>

#include "base/unique_fd.h"

namespace pawl::cli {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Can be read once one has come.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Which has come; 0: none.
  [[nodiscard]] int take();

 private:
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};  // A closed pipe is an error to whoever writes, not the end.
  UniqueFd fd_;
};

}  // namespace pawl::cli
