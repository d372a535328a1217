// From what was typed to what a Runner does: for `pawl run`, and for `pawl elect`, which is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/acquire_options.h"
#include "cli/runner.h"

namespace pawl::cli {

struct RunOptions {
  static constexpr Millis kDefault{-1};
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  AcquireOptions common;
  std::string on_lost = "stop";
  Millis kill_after = kDefault;
  std::uint64_t report_fd = kNone;
  std::vector<std::string> guards;      // KIND:RESOURCE
  std::vector<std::string> guard_dsns;  // DSN or KIND=DSN; see guard::assign_dsns()
  Millis guard_wait{5'000};
  bool guard_evict = false;
  std::vector<std::string> command;
};

// kInvalid says which option is wrong.
[[nodiscard]] Result<RunRequest> to_request(const Console& console, const RunOptions& options);

}  // namespace pawl::cli
