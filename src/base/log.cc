#include "base/log.h"

#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>
#include <algorithm>

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <thread>

#include "base/json_text.h"

namespace pawl {
namespace {

constexpr int kPollMs = 50;
constexpr std::chrono::milliseconds kCloseTimeout{250};
constexpr std::chrono::milliseconds kFlushTimeout{1000};
// A pipe that poll() reports as writable takes PIPE_BUF bytes without blocking; longer lines are
// cut.
constexpr std::size_t kLineMax = 4096;
// Of these, the bytes for time and level in a JSON line, and the most that fields may take.
constexpr std::size_t kJsonFrame = 80;
constexpr std::size_t kFieldsMax = 1500;

// How many bytes the UTF-8 character at the beginning of `text` has; 0 when there is none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 && first <= 0xf4   ? 4
                            : first >= 0xe0 && first <= 0xef ? 3
                            : first >= 0xc2 && first <= 0xdf ? 2
                                                             : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, a surrogate, or beyond the last character.
  const bool wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : bytes;
}

// Appends at most `most` bytes, in whole characters. Bytes that are not UTF-8 become U+FFFD: the
// line must be valid JSON, whatever it quotes.
void append_json_string(std::string& out, std::string_view text, std::size_t most) {
  const std::size_t end = out.size() + most;
  out += '"';
  std::string next;
  while (!text.empty()) {
    const std::size_t bytes = character(text);
    next.clear();
    append_json_text(next, bytes == 0 ? "\xef\xbf\xbd" : text.substr(0, bytes));
    if (out.size() + next.size() + 1 > end) break;
    out += next;
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  out += '"';
}

// The members of a JSON line after time and level.
std::string json_members(std::string_view line, LogFields fields) {
  std::string members;
  for (const LogField& field : fields) {
    if (field.text.empty() && !field.number) continue;
    std::string member = fmt::format(",\"{}\":", field.name);
    if (field.number) {
      member += std::to_string(*field.number);
    } else {
      append_json_string(member, field.text, kFieldsMax / 3);
    }
    if (members.size() + member.size() <= kFieldsMax) members += member;
  }
  std::string all = "\"message\":";
  append_json_string(all, line, kLineMax - kJsonFrame - members.size() - all.size());
  return all + members;
}

std::string_view name_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "error";
  return level == spdlog::level::warn ? "warning" : "info";
}

std::string timestamp(spdlog::log_clock::time_point when) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ms % 1000);
}

// Writes lines on the log's thread. Waits until the descriptor is writable before each write(2), so
// that closing the log never hangs because the reader has stopped.
class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  DescriptorSink(LogFormat format, int fd, std::weak_ptr<spdlog::details::thread_pool> pool)
      : format_(format), fd_(fd), pool_(std::move(pool)) {}

  [[nodiscard]] std::uint64_t handled() const { return handled_.load(); }

  void begin_close() {
    give_up_at_.store(
        (std::chrono::steady_clock::now() + kCloseTimeout).time_since_epoch().count());
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (wait_for_reader()) {
      report_dropped(message.time);
      put(message.level, message.time, {message.payload.data(), message.payload.size()});
    }
    ++handled_;
  }
  void flush_() override {}

 private:
  bool wait_for_reader() const {
    for (;;) {
      // After the close timeout the rest of the queue is tried without waiting, so that the time to
      // close does not depend on its length.
      const auto give_up = give_up_at_.load();
      const bool late =
          give_up != 0 && std::chrono::steady_clock::now().time_since_epoch().count() >= give_up;
      pollfd ready{fd_, POLLOUT, 0};
      if (::poll(&ready, 1, late ? 0 : kPollMs) > 0) return (ready.revents & POLLOUT) != 0;
      if (late) return false;
    }
  }

  void report_dropped(spdlog::log_clock::time_point when) {
    const auto pool = pool_.lock();
    const std::size_t dropped = pool ? pool->overrun_counter() : reported_;
    if (dropped == reported_) return;
    const std::size_t lost = dropped - reported_;
    const std::string line = fmt::format("{} log lines were dropped: stderr was not read", lost);
    put(spdlog::level::warn, when,
        format_ == LogFormat::kJson ? json_members(line, {{"dropped", lost}}) : line);
    reported_ = dropped;
  }

  // `text` is the message, or the members of a JSON line.
  void put(spdlog::level::level_enum level, spdlog::log_clock::time_point when,
           std::string_view text) const {
    std::string line;
    if (format_ == LogFormat::kJson) {
      line =
          fmt::format(R"({{"time":"{}","level":"{}",{}}})", timestamp(when), name_of(level), text);
    } else {
      line = fmt::format("{} {} {}", timestamp(when), name_of(level), text);
      line.resize(std::min(line.size(), kLineMax - 1));
    }
    line += '\n';
    // Nothing can be done about an error here, and there is no place to report it.
    [[maybe_unused]] const auto written = ::write(fd_, line.data(), line.size());
  }

  const LogFormat format_;
  const int fd_;
  const std::weak_ptr<spdlog::details::thread_pool> pool_;
  std::atomic<std::chrono::steady_clock::rep> give_up_at_{0};
  std::atomic<std::uint64_t> handled_{0};
  std::size_t reported_ = 0;  // Used only by the pool's thread.
};

class AsyncLog final : public Log {
 public:
  AsyncLog(LogFormat format, int fd)
      : format_(format),
        pool_(std::make_shared<spdlog::details::thread_pool>(kLogLinesMax, 1)),
        sink_(std::make_shared<DescriptorSink>(format, fd, pool_)),
        logger_(std::make_shared<spdlog::async_logger>(
            "pawl", sink_, pool_, spdlog::async_overflow_policy::overrun_oldest)) {}
  ~AsyncLog() override { sink_->begin_close(); }

  void write(LogLevel level, std::string_view line) override { write_with(level, line, {}); }

  void write_with(LogLevel level, std::string_view line, LogFields fields) override {
    if (format_ == LogFormat::kText) return queue(level, line);
    queue(level, json_members(line, fields));
  }

  void flush() override {
    const auto until = std::chrono::steady_clock::now() + kFlushTimeout;
    while (sink_->handled() < queued_.load() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  void queue(LogLevel level, std::string_view line) {
    ++queued_;
    const auto as = level == LogLevel::kError     ? spdlog::level::err
                    : level == LogLevel::kWarning ? spdlog::level::warn
                                                  : spdlog::level::info;
    logger_->log(as, spdlog::string_view_t(line.data(), line.size()));
  }

  const LogFormat format_;
  std::atomic<std::uint64_t> queued_{0};
  // Destroyed last to first: the pool last, which joins its thread after the queue is written or
  // given up.
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<DescriptorSink> sink_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

}  // namespace

std::unique_ptr<Log> open_log(LogFormat format, int fd) {
  return std::make_unique<AsyncLog>(format, fd);
}

}  // namespace pawl
