// A real pawld for C++ tests, with a free port and its own data directory; removed with the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/process.h"

namespace pawl {

// Polls until the condition holds; false after a minute.
inline bool eventually(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class PawldProcess {
 public:
  // `settings` are lines of its configuration; %d in them stands for its directory, which `prepare`
  // may fill before.
  explicit PawldProcess(std::string settings = "",
                        const std::function<void(const std::string&)>& prepare = {}) {
    std::string pattern = std::filesystem::temp_directory_path() / "libpawl-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no directory");
    dir_ = pattern;
    if (prepare) prepare(dir_);
    if (const auto at = settings.find("%d"); at != std::string::npos) settings.replace(at, 2, dir_);
    std::ofstream(dir_ + "/pawld.toml") << settings << "\n[journal]\nsegment_bytes = 1048576\n";
    start("0");
  }
  ~PawldProcess() {
    kill();
    std::filesystem::remove_all(dir_);
  }

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + port_; }

  [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(std::stoi(port_)); }

  void kill() { process_.kill(); }
  void start_again() { start(port_); }
  void stop() { process_.freeze(); }
  void go_on() { process_.resume(); }
  void reload() { process_.signal(SIGHUP); }
  // Everything it has logged so far.
  [[nodiscard]] std::string log() const {
    std::ifstream in(dir_ + "/log");
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  void start(const std::string& port) {
    const char* binary = std::getenv("PAWLD");
    if (binary == nullptr) throw std::runtime_error("set PAWLD to the pawld binary (ctest does)");
    const std::string port_file = dir_ + "/port";
    std::filesystem::remove(port_file);
    const UniqueFd log(
        ::open((dir_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    auto started =
        Process::start({binary, "--data", dir_ + "/data", "--resp", "127.0.0.1:" + port, "--http",
                        "off", "--port-file", port_file, "--config", dir_ + "/pawld.toml"},
                       {.out = log.get(), .err = log.get()});
    if (!started) throw std::runtime_error(started.error().detail);
    process_ = *std::move(started);
    const bool serves = eventually([&] {
      std::string text;
      std::ifstream(port_file) >> text;
      if (!text.empty()) port_ = text.substr(text.rfind(':') + 1);
      return !text.empty();
    });
    if (!serves) throw std::runtime_error("pawld does not serve");
  }

  std::string dir_;
  std::string port_;
  Process process_;
};

}  // namespace pawl
