// The options of `pawl run` and `pawl elect`, and the request that they make.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/acquire_options.h"
#include "cli/console.h"
#include "cli/run_environment.h"
#include "cli/run_plan.h"

namespace pawl::cli {

struct RunOptions {
  static constexpr Millis kDefault{-1};
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  AcquireOptions common;
  std::string on_lost = "stop";
  std::string on_ask = "report";
  Millis kill_after = kDefault;
  Millis max_stopped{0};
  std::uint64_t report_fd = kNone;
  std::vector<std::string> guards;      // KIND:RESOURCE
  std::vector<std::string> guard_dsns;  // DSN or KIND=DSN; see guard::assign_dsns()
  Millis guard_wait{5'000};
  bool guard_evict = false;
  bool verbose = false;
  std::vector<std::string> command;
};

// When somebody asks for the lock.
struct OnAsk {
  bool report = true;  // print a line
  int signal = 0;      // to the command; 0: none
};

struct RunRequest {
  client::AcquireCall call;
  std::optional<Millis> patience;  // how long to wait; nullopt = for ever
  RunTimes times;
  RunNames names;
  std::vector<std::string> command;  // empty: hold the lease until a signal or its end
  // Run one after the other before the command, under the same deadline. Each advances a guard to
  // our token.
  std::vector<std::vector<std::string>> guard_commands;
  // Without a command: reports that the lease is held. False: that could not be printed, so the
  // lease is released.
  std::function<bool(const client::GrantedLease&)> announce;
  OnAsk on_ask;
  int not_acquired = 75;
  int report_fd = -1;
  bool verbose = false;  // print how the command is stopped
};

// kInvalid says which option is wrong.
[[nodiscard]] Result<RunRequest> to_request(const Console& console, const RunOptions& options);

}  // namespace pawl::cli
