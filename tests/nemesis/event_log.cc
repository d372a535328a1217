#include "nemesis/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "base/assert.h"

namespace pawl::nemesis {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

Value::Value(std::uint64_t number) : json_(std::to_string(number)) {}
Value::Value(std::int64_t number) : json_(std::to_string(number)) {}
Value::Value(int number) : json_(std::to_string(number)) {}
Value::Value(bool truth) : json_(truth ? "true" : "false") {}
Value::Value(const std::string& text) : json_(json_string(text)) {}
Value::Value(const char* text) : json_(json_string(text)) {}

EventLog::EventLog(const std::string& path, std::int64_t ahead)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)), ahead_(ahead) {
  PAWL_ASSERT(file_ >= 0);
}

EventLog::~EventLog() {
  ::close(file_);
}

std::int64_t EventLog::now() const {
  timespec reading{};
  ::clock_gettime(CLOCK_BOOTTIME, &reading);
  return from_own_clock(reading.tv_sec * std::int64_t{1'000'000'000} + reading.tv_nsec);
}

void EventLog::say(std::string_view event, std::initializer_list<Field> fields) {
  say_at(now(), event, fields);
}

void EventLog::say_at(std::int64_t at, std::string_view event,
                      std::initializer_list<Field> fields) {
  std::string line = fmt::format("{{\"e\":\"{}\",\"at\":{}", event, at);
  for (const Field& field : fields)
    line += fmt::format(",\"{}\":{}", field.name, field.value.json());
  line += "}\n";
  const ssize_t written = ::write(file_, line.data(), line.size());
  PAWL_ASSERT(written ==
              static_cast<ssize_t>(line.size()));  // A history with holes proves nothing.
}

}  // namespace pawl::nemesis
