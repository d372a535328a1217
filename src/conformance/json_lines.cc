#include "conformance/json_lines.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace pawl::conformance {
namespace {

// Used for both, because it is random which of them is noticed first.
constexpr const char* kGone = "the guard's process has ended, or has closed its stdin or stdout";

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr auto kAnswerLimit = 60s;  // longer than any wait that the kit requests
constexpr auto kGracefulEnd = 5s;
constexpr std::size_t kLineMax = 16U << 20;

}  // namespace

Result<std::unique_ptr<JsonLines>> JsonLines::start(const std::string& command) {
  auto in = make_pipe();
  if (!in) return in.error();
  auto out = make_pipe();
  if (!out) return out.error();
  // A guard that has died must be an error, not a signal that ends this process.
  ::signal(SIGPIPE, SIG_IGN);
  auto process =
      Process::start({"/bin/sh", "-c", command}, {.in = in->read.get(), .out = out->write.get()});
  if (!process) return process.error();
  return std::unique_ptr<JsonLines>(
      new JsonLines(*std::move(process), std::move(in->write), std::move(out->read)));
}

JsonLines::JsonLines(Process process, UniqueFd in, UniqueFd out)
    : process_(std::move(process)),
      in_(std::move(in)),
      out_(std::move(out)),
      reader_([this] { read_answers(); }) {}

JsonLines::~JsonLines() {
  in_.reset();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGracefulEnd, [this] { return !broken_.empty(); });
  }
  process_.kill();
  reader_.join();
}

Result<json::object> JsonLines::ask(const json::object& request) {
  std::unique_lock lock(mutex_);
  const std::int64_t id = ++last_id_;
  answers_.emplace(id, std::nullopt);
  lock.unlock();
  json::object numbered{{"id", id}};
  numbered.insert(request.begin(), request.end());
  const std::string asked = json::serialize(numbered);
  const bool sent = send(asked + "\n");
  lock.lock();
  changed_.wait_for(lock, sent ? kAnswerLimit : 0s,
                    [&] { return answers_.at(id).has_value() || !broken_.empty(); });
  auto answer = std::move(answers_.extract(id).mapped());
  if (answer) return *std::move(answer);
  if (!broken_.empty())
    return Error{Code::kUnavailable, fmt::format("{}; the request was {}", broken_, asked)};
  return Error{
      Code::kUnavailable,
      sent ? fmt::format("timed out after 60 s waiting for the answer to {}", asked) : kGone};
}

bool JsonLines::send(const std::string& line) {
  const std::lock_guard lock(writing_);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t count = ::write(in_.get(), line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

void JsonLines::read_answers() {
  std::string text;
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t count = ::read(out_.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return give_up(kGone);
    text.append(chunk.data(), static_cast<std::size_t>(count));
    std::size_t from = 0;
    for (std::size_t end = 0; (end = text.find('\n', from)) != text.npos; from = end + 1) {
      if (const auto wrong = take(text.substr(from, end - from))) return give_up(*wrong);
    }
    text.erase(0, from);
    if (text.size() > kLineMax) return give_up("the guard's process wrote a line that is too long");
  }
}

std::optional<std::string> JsonLines::take(const std::string& line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  const auto quoted = [&] { return line.substr(0, 200); };
  if (error || !value.is_object())
    return fmt::format("the guard's process wrote something that is not a JSON object: {}",
                       quoted());
  const json::value* id = value.as_object().if_contains("id");
  if (id == nullptr || !id->is_int64())
    return fmt::format("the guard's process wrote an answer without an id: {}", quoted());
  const std::lock_guard lock(mutex_);
  const auto asked = answers_.find(id->as_int64());
  // The answer to a request that has timed out is ignored.
  if (asked == answers_.end() && id->as_int64() > last_id_)
    return fmt::format("the guard's process answered a request that was not made: {}", quoted());
  if (asked != answers_.end()) asked->second = value.as_object();
  changed_.notify_all();
  return std::nullopt;
}

void JsonLines::give_up(const std::string& why) {
  const std::lock_guard lock(mutex_);
  broken_ = why;
  changed_.notify_all();
}

}  // namespace pawl::conformance
