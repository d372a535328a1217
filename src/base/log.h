// The log of pawld: messages for its operator, on stderr, one line each.
//
//   std::unique_ptr<Log> log = open_log(LogFormat::kText);
//   log->info(fmt::format("listening on {}", address), {{"address", address}});
//
// The message is complete by itself. Fields repeat parts of it for programs: a JSON line has them
// as members besides "message", a text line leaves them out.
//
// Lines are written by a thread of the log, so that a stderr that is not read never stops the loop
// (hard case 25). If more than kLogLinesMax lines are queued the oldest are dropped, and the next
// line that is written says how many. Never log a lease or a request id:
// both are secrets.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pawl {

inline constexpr std::size_t kLogLinesMax = 8192;

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };
enum class LogFormat : std::uint8_t { kText, kJson };

// A text or a number with a name. It refers to the text of the caller: use it as an argument only.
struct LogField {
  LogField(std::string_view its_name, std::string_view its_text) : name(its_name), text(its_text) {}
  LogField(std::string_view its_name, std::unsigned_integral auto its_number)
      : name(its_name), number(its_number) {}

  std::string_view name;
  std::string_view text;  // If it is empty and there is no number, the field is left out.
  std::optional<std::uint64_t> number;
};
using LogFields = std::initializer_list<LogField>;

// May be used by any thread.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(LogLevel level, std::string_view line) = 0;
  virtual void write_with(LogLevel level, std::string_view line, LogFields /*fields*/) {
    write(level, line);
  }
  // Returns once all lines so far are written, or after a second. Call it before printing something
  // else to the same terminal.
  virtual void flush() {}

  void info(std::string_view line, LogFields fields = {}) {
    write_with(LogLevel::kInfo, line, fields);
  }
  void warning(std::string_view line, LogFields fields = {}) {
    write_with(LogLevel::kWarning, line, fields);
  }
  void error(std::string_view line, LogFields fields = {}) {
    write_with(LogLevel::kError, line, fields);
  }
};

// For tests and simulations.
class NoLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {}
};

// A log that writes to `fd`. Its destructor waits until the queue is written, but at most a quarter
// of a second if `fd` is not read.
[[nodiscard]] std::unique_ptr<Log> open_log(LogFormat format, int fd = 2);

}  // namespace pawl
