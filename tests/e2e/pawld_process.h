// A real pawld for C++ tests: a free port, a data directory of its own, gone with the test.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pawl {

// Looks again and again; what is waited for decides, the limit only ends a hopeless test.
inline bool eventually(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline pid_t spawn(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + words[0]);
  }
  return pid;
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

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }
  void start_again() { start(port_); }
  void stop() { ::kill(pid_, SIGSTOP); }
  void go_on() { ::kill(pid_, SIGCONT); }
  void reload() { ::kill(pid_, SIGHUP); }
  // Its log so far.
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
    // Dies with this test, even when that is killed.
    pid_ = spawn({"sh", "-c", "exec setpriv --pdeathsig KILL \"$@\" >>\"$0\" 2>&1", dir_ + "/log",
                  binary, "--data", dir_ + "/data", "--resp", "127.0.0.1:" + port, "--http", "off",
                  "--port-file", port_file, "--config", dir_ + "/pawld.toml"});
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
  pid_t pid_ = -1;
};

}  // namespace pawl
