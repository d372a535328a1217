// What pawld was asked to do: flags over the configuration file over defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "pawl/result.h"
#include "pawld/restoring.h"
#include "store/journal/settings.h"
#include "tls/context.h"

namespace pawl::pawld {

inline constexpr std::string_view kHttpOff = "off";
inline constexpr Millis kWaitMax{600'000};

enum class StoreKind : std::uint8_t { kJournal, kMemory };

struct Config {
  std::string data = "pawl-data";
  std::string resp = "127.0.0.1:7295";
  std::string http = "127.0.0.1:7296";  // "off": not served
  std::vector<std::string>
      http_hosts;  // names that requests may give in Host, beside the loopback ones
  LogFormat log_format = LogFormat::kText;
  StoreKind store = StoreKind::kJournal;
  std::string auth_file;  // empty: everyone is admin
  bool insecure = false;
  Millis wait{10'000};  // For data or a port that the pawld before this one still holds.
  Millis max_ttl = limits::kTtlMaxDefault;
  store::journal::Settings journal;
  tls::ServerFiles tls;  // Empty: connections are plain.
};

// Reads a TOML file over `config`. Unknown keys, wrong types and values out of range are errors
// that name key and line.
[[nodiscard]] Result<void> read_config(const std::string& path, Config& config);
// The same for a text; `name` is what errors call it.
[[nodiscard]] Result<void> parse_config(std::string_view text, const std::string& name,
                                        Config& config);
// As a TOML file that read_config() would understand.
[[nodiscard]] std::string to_toml(const Config& config);

enum class Action : std::uint8_t {
  kServe,
  kCheckConfig,
  kPrintConfig,
  kDump,
  kInit,
  kVerify,
  kRestore
};

struct Options {
  Action action = Action::kServe;
  Config config;
  RestoreOptions restore;                           // the new store goes to Config::data
  bool json = false;                                // verify, restore: for programs
  bool adopt = false;                               // accept data that was used on another machine
  std::string machine_id_file = "/etc/machine-id";  // elsewhere in tests
  std::string config_file;                          // empty: none
  std::string port_file;  // where to write the port once it is bound; tests ask for port 0
};

// `options` when there is something to do. Otherwise `exit_code` says how to end; help or the error
// is printed already.
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace pawl::pawld
