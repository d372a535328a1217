#include "conformance/json_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace pawl::conformance {
namespace {

// Which of the two is noticed first is chance.
constexpr const char* kGone = "the guard's process has ended, or has closed its stdin or stdout";

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr auto kAnswerLimit = 60s;  // Longer than any wait that the kit asks for.
constexpr auto kFarewell = 5s;
constexpr std::size_t kLineMax = 16U << 20;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// 0, or an errno.
int spawn(const std::string& command, const Pipe& in, const Pipe& out, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // We ignore SIGPIPE, which the child must not inherit.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh";
  std::string flag = "-c";
  std::string text = command;
  const std::array<char*, 4> words{shell.data(), flag.data(), text.data(), nullptr};
  const int error = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Result<std::unique_ptr<JsonLines>> JsonLines::start(const std::string& command) {
  auto in = make_pipe();
  auto out = make_pipe();
  if (!in || !out)
    return Error{Code::kUnavailable, fmt::format("no pipe: {}", std::strerror(errno))};
  // A guard that has died must be an answer, not a signal that ends us.
  ::signal(SIGPIPE, SIG_IGN);
  pid_t pid = 0;
  if (const int error = spawn(command, *in, *out, pid); error != 0)
    return Error{Code::kUnavailable,
                 fmt::format("cannot start \"{}\": {}", command, std::strerror(error))};
  return std::unique_ptr<JsonLines>(new JsonLines(pid, std::move(in->write), std::move(out->read)));
}

JsonLines::JsonLines(pid_t pid, UniqueFd in, UniqueFd out)
    : pid_(pid), in_(std::move(in)), out_(std::move(out)), reader_([this] { read_answers(); }) {}

JsonLines::~JsonLines() {
  in_.reset();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kFarewell, [this] { return !broken_.empty(); });
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
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
    return Error{Code::kUnavailable, fmt::format("{}; asked was {}", broken_, asked)};
  return Error{Code::kUnavailable,
               sent ? fmt::format("no answer within a minute to {}", asked) : kGone};
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
    if (text.size() > kLineMax)
      return give_up("the guard's process wrote a line that does not end");
  }
}

std::optional<std::string> JsonLines::take(const std::string& line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  const auto quoted = [&] { return line.substr(0, 200); };
  if (error || !value.is_object())
    return fmt::format("the guard's process wrote what is no JSON object: {}", quoted());
  const json::value* id = value.as_object().if_contains("id");
  if (id == nullptr || !id->is_int64())
    return fmt::format("the guard's process wrote an answer without an id: {}", quoted());
  const std::lock_guard lock(mutex_);
  const auto asked = answers_.find(id->as_int64());
  // No caller waits any more for one that came too late.
  if (asked == answers_.end() && id->as_int64() > last_id_)
    return fmt::format("the guard's process answered what was not asked: {}", quoted());
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
