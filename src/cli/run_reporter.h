// The output of `pawl run`: messages on stderr, and one JSON line per event on --report-fd.
//
// A reader that does not read must not delay the deadline: a line that cannot be written at once is
// dropped.
#pragma once

#include <string_view>

#include "cli/json.h"
#include "client/calls.h"
#include "wire/replies.h"

namespace pawl::cli {

class RunReporter {
 public:
  // A negative descriptor: no reports.
  explicit RunReporter(int report_fd) : report_fd_(report_fd) {}

  void message(std::string_view line) const;

  void acquired(const client::GrantedLease& granted) const;
  // `stopped_by`: how everything of the command is stopped, "cgroup" or "descendants".
  void started(int pid, std::string_view stopped_by) const;
  void renewed(Millis expires_in) const;
  // Somebody wants the lock.
  void release_wanted(const wire::ReleaseWanted& wanted) const;
  // A signal has stopped the command, and not pawl with it; and it was continued.
  void stopped(int signal) const;
  void continued() const;
  // The lease is lost, or --max-hold or --max-stopped was reached.
  void lost(std::string_view reason) const;
  void released(bool confirmed) const;
  void exited(int code) const;

 private:
  [[nodiscard]] static Json event(std::string_view name);
  void report(Json& json) const;

  const int report_fd_;
};

}  // namespace pawl::cli
