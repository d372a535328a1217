// What a drill or the demo is run with: one struct, from the command line to the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/address.h"
#include "drill/record.h"
#include "drill/target.h"
#include "pawl/client.h"

namespace pawl::drill {

struct DrillConfig {
  // The pawl binary, which workers run as `pawl drill-worker`.
  std::string program = "/proc/self/exe";

  // The pawld to use, and how to log in there. Without an address, and for drills that kill or
  // restore pawld, a throw-away pawld is started instead.
  std::vector<client::Address> pawld = {};
  Auth auth = {};
  TlsOptions tls = {};

  std::string lock = {};
  std::chrono::milliseconds ttl{2'000};
  // How long to wait for the lock when others hold it.
  std::chrono::milliseconds lock_wait{10'000};

  // What workers write to. run_drill() makes a scratch resource when it names none, and a SQLite
  // file for it when target.where is empty as well.
  Target target = {};
  // Of the target's guard: observe, shadow, enforce, canary; kUnguarded: there is no guard.
  std::string mode = "enforce";
  // Whether that guard refuses writes without a token. run_drill() sets it for a scratch resource.
  std::optional<bool> require_token = {};
  // What is under the user's own guard.
  std::vector<std::string> tables = {};

  // The options that name its database to `pawl guard`, without secrets: "--file shop.db".
  std::string guard_options = {};

  std::uint64_t rounds = 1;

  // Becomes readable when the drill is to stop. -1: never.
  int stop_fd = -1;
  // Called for each log entry, as it happens.
  std::function<void(const LogEntry&)> on_log = {};
  // Called several times a second during a wait, with what is waited for and for how long.
  std::function<void(std::string_view what, Moment waited)> on_wait = {};
  // Called before a worker advances the fence to a token it was granted. An error: it must not,
  // and the drill ends with this error.
  std::function<std::optional<Error>(std::uint64_t token)> before_advance = {};
};

inline constexpr std::string_view kUnguarded = "none";

// The addresses as libpawl takes them: "127.0.0.1:7295,tls://other:7295".
[[nodiscard]] std::string to_text(const std::vector<client::Address>& addresses);

}  // namespace pawl::drill
