// A pawld that a drill may do to what it likes: killed, started again with other clocks, restored
// from a backup. It lives in a temporary directory, on a loopback port that it keeps over its
// restarts, and is gone with all its data when this is.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "client/address.h"
#include "drill/process.h"
#include "pawl/result.h"

namespace pawl::drill {

// Beside this very program, else in PATH. kUnavailable: nowhere.
[[nodiscard]] Result<std::string> find_pawld();

class ThrowawayPawld {
 public:
  // Started, and serving.
  static Result<std::unique_ptr<ThrowawayPawld>> open(const std::string& program);
  ~ThrowawayPawld();

  [[nodiscard]] const client::Address& address() const { return address_; }

  // Returns once it serves. `clocks`: how far its clocks are from ours.
  Result<void> start(Process::Clocks clocks = {});
  // kill -9.
  void kill() { process_.kill(); }
  // A copy of everything, made by pawld while it serves.
  Result<void> back_up();
  // The data directory is lost, and made again from the backup with `pawld restore --skip-wait`.
  // While it is not running.
  Result<void> restore();

  [[nodiscard]] std::string log() const;

 private:
  ThrowawayPawld(std::string program, std::string directory)
      : program_(std::move(program)), directory_(std::move(directory)) {}
  [[nodiscard]] std::string path(const char* name) const { return directory_ + "/" + name; }
  Result<void> serving();
  // It has not done what it should; with the end of its log.
  [[nodiscard]] Error failure(std::string what) const;

  const std::string program_;
  const std::string directory_;
  client::Address address_{.host = "127.0.0.1", .port = 0};
  Process process_;
};

}  // namespace pawl::drill
