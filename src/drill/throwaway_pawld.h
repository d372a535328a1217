// A pawld for one drill, which may be killed, started again with other clocks, or restored from a
// backup. It has a temporary directory and a loopback port, which it keeps over restarts. Its
// destructor kills it and removes the directory.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/process.h"
#include "client/address.h"
#include "drill/scratch.h"
#include "pawl/result.h"

namespace pawl::drill {

// The path of pawld: beside this program, else in PATH. kUnavailable: not found.
[[nodiscard]] Result<std::string> find_pawld();

class ThrowawayPawld {
 public:
  // Started, and ready for clients.
  static Result<std::unique_ptr<ThrowawayPawld>> open(const std::string& program);
  ~ThrowawayPawld();

  [[nodiscard]] const client::Address& address() const { return address_; }

  // Returns once it is ready for clients. `clock_offset`: how far its clocks are from ours.
  Result<void> start(std::chrono::seconds clock_offset = {});
  // kill -9.
  void kill() { process_.kill(); }
  // Makes a backup while it runs; replaces the one before.
  Result<void> back_up();
  // Deletes the data directory and restores it from the backup with `pawld restore --skip-wait`.
  // Only while it is killed.
  Result<void> restore();

  [[nodiscard]] std::string log() const;

 private:
  ThrowawayPawld(std::string program, TemporaryDirectory directory)
      : program_(std::move(program)), directory_(std::move(directory)) {}
  [[nodiscard]] std::string path(const char* name) const { return directory_.file(name); }
  Result<void> await_ready();
  // An error with the end of pawld's log.
  [[nodiscard]] Error failure(std::string what) const;

  const std::string program_;
  const TemporaryDirectory directory_;
  client::Address address_{.host = "127.0.0.1", .port = 0};
  Process process_;
};

}  // namespace pawl::drill
