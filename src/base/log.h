// What pawld tells its operator, on stderr, one line each.
//
//   std::unique_ptr<Log> log = open_log(LogFormat::kText);
//   log->info(fmt::format("listening on {}", address));
//
// A line is handed to a thread of its own and the caller goes on: a stderr that nobody reads must never stop
// the loop (hard case 25). When more than kLogLinesMax lines wait, the oldest are dropped, and the next line
// that gets through says how many. Never log a lease or a request id; log their redacted() form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"

namespace pawl {

inline constexpr std::size_t kLogLinesMax = 8192;

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };
enum class LogFormat : std::uint8_t { kText, kJson };

// Any thread may call it.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(LogLevel level, std::string_view line) = 0;

  void info(std::string_view line) { write(LogLevel::kInfo, line); }
  void warning(std::string_view line) { write(LogLevel::kWarning, line); }
  void error(std::string_view line) { write(LogLevel::kError, line); }
};

// For tests and simulations.
class NoLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {}
};

// Writes to `fd`. Destroying it waits for what is queued, at most a quarter of a second when nobody reads.
[[nodiscard]] std::unique_ptr<Log> open_log(LogFormat format, int fd = 2);

// A short fingerprint of a lease: enough to follow it through a log, useless to whoever wants to use it.
[[nodiscard]] std::string redacted(LeaseId lease);

}  // namespace pawl
