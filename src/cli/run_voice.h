// What `pawl run` says: lines for people on stderr, one JSON line per event on --report-fd.
//
// While something is held, nobody who does not read may hold up the deadline: what cannot be
// written at once is dropped.
#pragma once

#include <string_view>

#include "cli/json.h"
#include "client/calls.h"

namespace pawl::cli {

class RunVoice {
 public:
  // Negative: no reports.
  explicit RunVoice(int report_fd) : report_fd_(report_fd) {}

  void say(std::string_view line) const;

  void acquired(const client::Held& held) const;
  void started(int pid) const;
  void renewed(Millis expires_in) const;
  // The lease is lost, or --max-hold was reached.
  void lost(std::string_view reason) const;
  void released(bool confirmed) const;
  void exits(int code) const;

 private:
  [[nodiscard]] static Json begin(std::string_view event);
  void report(Json& json) const;

  const int report_fd_;
};

}  // namespace pawl::cli
