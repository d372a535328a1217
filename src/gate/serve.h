// Runs a gate from what a command line says, and asks a gate that runs on this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/types.h"
#include "pawl/guard.h"
#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::gate {

struct GateOptions {
  std::string listen;                  // "127.0.0.1:8080"
  tls::ServerFiles tls;                // for clients; not configured: plain
  std::string admin;                   // the same, for /metrics; empty: none
  std::string upstream;                // "http://127.0.0.1:9000", "https://…"
  std::string upstream_ca;             // who signs its certificate; empty: whom the system trusts
  std::vector<std::string> resources;  // "path:/accounts/{id}"
  std::string state;                   // the directory of its marks
  bool must_exist = false;             // the marks
  GuardMode mode = GuardMode::kEnforce;
  bool allow_missing = false;
  bool pass_unmatched = false;
  Millis drain_wait{5000};
  Millis upstream_timeout{60'000};
};

// Serves until `stop_fd` is readable. `on_ready` gets the address that it listens on.
//   kInvalid, kDenied  the options, or a damaged file of marks
//   kBusy              another gate uses the state directory, or another program the address
//   kUnknown           a mark could not be written: start it again
Result<void> serve(const GateOptions& options, Log& log, int stop_fd,
                   const std::function<void(const std::string& address)>& on_ready);

// Asks the gate that uses `state`, over its socket there. kUnavailable: none runs; kInvalid: the
// gate's reason why not.
Result<std::string> ask_status(const std::string& state);
// How many forwards were settled.
Result<std::uint64_t> ask_to_settle(const std::string& state, const std::string& resource);

}  // namespace pawl::gate
