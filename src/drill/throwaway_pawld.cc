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

constexpr auto kLimit = 30s;  // for a start or a backup on a slow disk
constexpr int kPollMs = 5;
constexpr std::size_t kLogShown = 2'000;

bool executable(const fs::path& path) {
  return ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Until it is ready it answers LOADING, or not at all.
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
  return Error{Code::kUnavailable, "cannot find pawld, neither beside pawl nor in PATH"};
}

Result<std::unique_ptr<ThrowawayPawld>> ThrowawayPawld::open(const std::string& program) {
  auto directory = TemporaryDirectory::make();
  if (!directory) return directory.error();
  std::unique_ptr<ThrowawayPawld> pawld(new ThrowawayPawld(program, *std::move(directory)));
  // Small segments: they are allocated in advance, and a drill writes little.
  std::ofstream(pawld->path("pawld.toml")) << "[journal]\nsegment_bytes = 1048576\n";
  if (const auto started = pawld->start(); !started) return started.error();
  return pawld;
}

ThrowawayPawld::~ThrowawayPawld() {
  kill();
}

Result<void> ThrowawayPawld::start(std::chrono::seconds clock_offset) {
  std::error_code ignored;
  fs::remove(path("port"), ignored);
  const UniqueFd log(::open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  auto started = Process::start(
      {program_, "--data", path("data"), "--resp", fmt::format("127.0.0.1:{}", address_.port),
       "--http", "off", "--port-file", path("port"), "--config", path("pawld.toml")},
      {.out = log.get(), .err = log.get(), .clock_offset = clock_offset});
  if (!started) return started.error();
  process_ = *std::move(started);
  return await_ready();
}

Result<void> ThrowawayPawld::await_ready() {
  const auto limit = client::boot_now() + kLimit;
  while (client::boot_now() < limit) {
    if (!process_.running()) return failure("ended during its start");
    unsigned port = 0;
    std::ifstream(path("port")) >> port;
    if (port != 0) {
      address_.port = static_cast<std::uint16_t>(port);
      if (answers(address_)) return {};
    }
    ::poll(nullptr, 0, kPollMs);
  }
  return failure(fmt::format("timed out after {} s: it does not answer", kLimit.count()));
}

Result<void> ThrowawayPawld::back_up() {
  std::error_code ignored;
  fs::remove_all(path("backup"), ignored);
  SystemRandom random;
  client::ConnectionOptions options;
  options.call_timeout = kLimit;
  client::BlockingConnection pawld({address_}, random, std::move(options));
  const auto done = pawld.command(
      {.words = {"BACKUP", path("backup")}, .repeat = client::CommandCall::Repeat::kForbidden});
  if (!done) return failure("failed to make a backup: " + done.error().detail);
  return {};
}

Result<void> ThrowawayPawld::restore() {
  std::error_code ignored;
  fs::remove_all(path("data"), ignored);
  const UniqueFd log(::open(path("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  auto started = Process::start(
      {program_, "restore", "--from", path("backup"), "--data", path("data"), "--skip-wait"},
      {.out = log.get(), .err = log.get()});
  if (!started) return started.error();
  if (started->wait() != 0) return failure("could not be restored");
  return {};
}

std::string ThrowawayPawld::log() const {
  return read_file(path("log"));
}

Error ThrowawayPawld::failure(std::string what) const {
  const std::string text = log();
  const std::string end = text.size() > kLogShown ? text.substr(text.size() - kLogShown) : text;
  return {Code::kUnavailable,
          fmt::format("the throw-away pawld {}. The end of its log:\n{}", what, end)};
}

}  // namespace pawl::drill
