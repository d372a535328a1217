// The command line and the configuration file of pawld. Flags override the file, and the file
// overrides the defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "pawl/result.h"
#include "pawld/cluster_options.h"
#include "pawld/restore_backup.h"
#include "store/journal/settings.h"
#include "tls/context.h"

namespace pawl::pawld {

// The value of Config::http if HTTP is not served.
inline constexpr std::string_view kHttpOff = "off";
// The greatest value of Config::wait.
inline constexpr Millis kWaitMax{600'000};

enum class StoreKind : std::uint8_t { kJournal, kMemory, kEtcd };
// journal, memory, etcd
[[nodiscard]] std::string_view store_name(StoreKind kind);
[[nodiscard]] std::optional<StoreKind> parse_store(std::string_view text);

// What clients may use of pawld's memory, in all and each user.
struct MemoryLimits {
  std::uint64_t leases = limits::kLeasesMax;
  std::uint64_t lease_bytes = limits::kLeaseBytesMax;
  std::uint64_t waiters = limits::kWaitersMax;
  std::uint64_t observers = limits::kObserversMax;
  std::uint64_t history_bytes = limits::kHistoryBytes;
  std::uint64_t output_bytes = limits::kOutputTotalMax;
  std::uint64_t leases_per_user = limits::kLeasesPerUser;
  std::uint64_t lease_bytes_per_user = limits::kLeaseBytesPerUser;
  std::uint64_t waiters_per_user = limits::kWaitersPerUser;
  std::uint64_t observers_per_user = limits::kObserversPerUser;
};

struct Config {
  // The directory of the store.
  std::string data = "pawl-data";
  // Listen addresses for RESP and HTTP. kHttpOff: HTTP is not served.
  std::string resp = "127.0.0.1:7295";
  std::string http = "127.0.0.1:7296";
  // Names that HTTP requests may have in Host, besides the loopback ones.
  std::vector<std::string> http_hosts;
  LogFormat log_format = LogFormat::kText;
  StoreKind store = StoreKind::kJournal;
  // Empty: no users, and every client is an administrator.
  std::string auth_file;
  // Allow non-loopback addresses without users and TLS.
  bool insecure = false;
  // How long to wait for data or a port that the previous pawld still holds.
  Millis wait{10'000};
  Millis max_ttl = limits::kTtlMaxDefault;
  MemoryLimits limits;
  Millis max_delay = limits::kDelayMax;
  store::journal::Settings journal;
  ClusterOptions etcd;
  // Empty: connections are plain.
  tls::ServerFiles tls;
};

// Reads a TOML file into `config`. Keys that the file does not have keep their value. Unknown keys,
// wrong types and values out of range are errors (kInvalid) that name key and line.
[[nodiscard]] Result<void> read_config(const std::string& path, Config& config);
// The same for a text; errors call it `name`.
[[nodiscard]] Result<void> parse_config(std::string_view text, const std::string& name,
                                        Config& config);
// A TOML file from which read_config() reads `config`.
[[nodiscard]] std::string to_toml(const Config& config);

enum class Action : std::uint8_t {
  kServe,
  kCheckConfig,
  kPrintConfig,
  kDump,
  kInit,
  kVerify,
  kRestore,
  kBackup
};

struct Options {
  Action action = Action::kServe;
  Config config;
  // restore: the new store goes to Config::data.
  RestoreOptions restore;
  // backup: the directory to create.
  std::string backup_to;
  // verify, restore, backup: print JSON.
  bool json = false;
  // Accept data that was last used on another machine.
  bool adopt = false;
  // Another file in tests.
  std::string machine_id_file = "/etc/machine-id";
  // Empty: none.
  std::string config_file;
  // If not empty, the ports are written to this file once they are bound; tests use port 0.
  std::string port_file;
};

// If there is nothing to do `options` is empty: help or an error was printed, and the process must
// end with `exit_code`.
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace pawl::pawld
