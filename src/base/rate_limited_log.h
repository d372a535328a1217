// A rate-limited log for messages that untrusted peers can trigger: at most a few lines per period,
// and the next line that is written says how many were left out.
//
//   RateLimitedLog limited(log);
//   limited.warning(now, "TLS handshake with 10.0.0.7:4711 failed: …");
//
// Where a line is expensive to build, or carries the number in a field of its own:
//
//   if (const auto left_out = limited.admit(now))
//     log.warning(text + RateLimitedLog::suffix(*left_out), {{"more", *left_out}});
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/types.h"

namespace pawl {

// Belongs to one thread.
class RateLimitedLog {
 public:
  struct Limit {
    int lines = 10;
    Nanos period = std::chrono::seconds(10);
  };

  RateLimitedLog(Log& log, Limit limit) : log_(log), limit_(limit) {}
  explicit RateLimitedLog(Log& log) : RateLimitedLog(log, Limit{}) {}

  // Whether a line may be written now; if so, the number of lines left out since the last one.
  // `now` is read from any clock that does not go back, the same one at every call.
  [[nodiscard]] std::optional<std::uint64_t> admit(Nanos now) {
    if (now >= period_end_) {
      period_end_ = now + limit_.period;
      written_ = 0;
    }
    if (written_ == limit_.lines) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    return std::exchange(left_out_, 0);
  }

  // What the text of a line ends with when lines were left out before it; empty when none were.
  [[nodiscard]] static std::string suffix(std::uint64_t left_out) {
    return left_out == 0 ? "" : " (" + std::to_string(left_out) + " more since the last line)";
  }

  void warning(Nanos now, const std::string& line, LogFields fields = {}) {
    if (const auto left_out = admit(now)) log_.warning(line + suffix(*left_out), fields);
  }

 private:
  Log& log_;
  const Limit limit_;
  Nanos period_end_{0};
  int written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace pawl
