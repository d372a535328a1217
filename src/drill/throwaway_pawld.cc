#include "drill/throwaway_pawld.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/random.h"
#include "client/blocking_connection.h"
#include "client/boot_clock.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kPatience = 30s;  // With a slow disk; it ends a hopeless wait only.
constexpr int kLookEveryMs = 5;
constexpr std::size_t kLogShown = 2'000;

bool executable(const fs::path& path) {
  return ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Before it serves it answers LOADING, if at all.
bool answers(const client::Address& address) {
  SystemRandom random;
  client::ConnectionOptions options;
  options.connect_timeout = options.call_timeout = 1s;
  client::BlockingConnection pawld({address}, random, std::move(options));
  return static_cast<bool>(pawld.command({.words = {"INSPECT", "ready"}}));
}

}  // namespace

Result<std::string> find_pawld() {
  std::error_code failed;
  const fs::path beside = fs::read_symlink("/proc/self/exe", failed).parent_path() / "pawld";
  if (!failed && executable(beside)) return beside.string();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && executable(fs::path(folder) / "pawld"))
      return (fs::path(folder) / "pawld").string();
  }
  return Error{Code::kUnavailable, "no pawld was found, neither beside pawl nor in PATH"};
}

Result<std::unique_ptr<ThrowawayPawld>> ThrowawayPawld::open(const std::string& program) {
  std::string pattern = fs::temp_directory_path() / "pawl-drill-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    return Error{Code::kUnavailable,
                 fmt::format("no temporary directory: {}", std::strerror(errno))};
  std::unique_ptr<ThrowawayPawld> pawld(new ThrowawayPawld(program, pattern));
  // Small segments: they are written in advance, and nothing much will be in them.
  std::ofstream(pawld->path("pawld.toml")) << "[journal]\nsegment_bytes = 1048576\n";
  if (const auto started = pawld->start(); !started) return started.error();
  return pawld;
}

ThrowawayPawld::~ThrowawayPawld() {
  kill();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

Result<void> ThrowawayPawld::start(Process::Clocks clocks) {
  std::error_code ignored;
  fs::remove(path("port"), ignored);
  const UniqueFd log(::open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  auto started = Process::start(
      {program_, "--data", path("data"), "--resp", fmt::format("127.0.0.1:{}", address_.port),
       "--http", "off", "--port-file", path("port"), "--config", path("pawld.toml")},
      {.out = log.get(), .error = log.get()}, clocks);
  if (!started) return started.error();
  process_ = *std::move(started);
  return serving();
}

Result<void> ThrowawayPawld::serving() {
  const auto limit = client::boot_now() + kPatience;
  while (client::boot_now() < limit) {
    if (!process_.lives()) return failure("ended instead of serving");
    unsigned port = 0;
    std::ifstream(path("port")) >> port;
    if (port != 0) {
      address_.port = static_cast<std::uint16_t>(port);
      if (answers(address_)) return {};
    }
    ::poll(nullptr, 0, kLookEveryMs);
  }
  return failure("does not serve");
}

Result<void> ThrowawayPawld::back_up() {
  std::error_code ignored;
  fs::remove_all(path("backup"), ignored);
  SystemRandom random;
  client::ConnectionOptions options;
  options.call_timeout = kPatience;
  client::BlockingConnection pawld({address_}, random, std::move(options));
  const auto done = pawld.command(
      {.words = {"BACKUP", path("backup")}, .repeat = client::CommandCall::Repeat::kForbidden});
  if (!done) return failure("was not backed up: " + done.error().detail);
  return {};
}

Result<void> ThrowawayPawld::restore() {
  std::error_code ignored;
  fs::remove_all(path("data"), ignored);
  const UniqueFd log(::open(path("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  auto started = Process::start(
      {program_, "restore", "--from", path("backup"), "--data", path("data"), "--skip-wait"},
      {.out = log.get(), .error = log.get()});
  if (!started) return started.error();
  if (started->wait() != 0) return failure("was not restored");
  return {};
}

std::string ThrowawayPawld::log() const {
  return read_file(path("log"));
}

Error ThrowawayPawld::failure(std::string what) const {
  const std::string said = log();
  const std::string end = said.size() > kLogShown ? said.substr(said.size() - kLogShown) : said;
  return {Code::kUnavailable, fmt::format("the throw-away pawld {}. It said:\n{}", what, end)};
}

}  // namespace pawl::drill
