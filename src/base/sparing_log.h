// For lines that strangers cause: so many per period, and the next that gets through says how many
// were left out.
//
//   SparingLog said(log);
//   said.warning(now, "TLS handshake with 10.0.0.7:4711 failed: …");
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/types.h"

namespace pawl {

// Belongs to one thread.
class SparingLog {
 public:
  static constexpr Nanos kPeriod = std::chrono::seconds(10);
  static constexpr int kLinesPerPeriod = 10;

  explicit SparingLog(Log& log) : log_(log) {}

  // `now` of any clock that does not go back, the same at every call.
  void warning(Nanos now, const std::string& line, LogFields fields = {}) {
    if (now >= period_end_) {
      period_end_ = now + kPeriod;
      said_ = 0;
    }
    if (said_ == kLinesPerPeriod) {
      ++unsaid_;
      return;
    }
    ++said_;
    const std::uint64_t unsaid = std::exchange(unsaid_, 0);
    log_.warning(
        unsaid == 0 ? line : line + " (" + std::to_string(unsaid) + " more since the last line)",
        fields);
  }

 private:
  Log& log_;
  Nanos period_end_{0};
  int said_ = 0;
  std::uint64_t unsaid_ = 0;
};

}  // namespace pawl
