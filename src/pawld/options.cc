#include "pawld/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "auth/users_disk.h"
#include "base/duration.h"
#include "base/suggestion.h"
#include "base/version.h"
#include "pawld/exit_codes.h"
#include "server/listener.h"

namespace pawl::pawld {
namespace {

// A check in the form of CLI11: returns what is wrong, or nothing.
std::string not_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

// A duration; 0 needs no unit.
Result<Millis> read_wait(const std::string& text) {
  const auto wait = parse_duration(text == "0" ? "0s" : text);
  if (wait && *wait > kWaitMax) {
    return Error{Code::kInvalid,
                 fmt::format("{} is too long; at most {}", text, to_text(kWaitMax))};
  }
  return wait;
}

constexpr const char* kExamples =
    "Examples:\n"
    "  pawld                                     serve on loopback, data in ./pawl-data\n"
    "  pawld --data /var/lib/pawl --must-exist   as a service: never start on an unmounted volume\n"
    "  pawld --config pawld.toml --check-config  check the configuration\n"
    "  pawld init --data /var/lib/pawl           create the store that --must-exist requires\n"
    "  pawld --auth-file users                   serve only these users (see pawl auth --help)\n"
    "  pawld --tls-cert cert.pem --tls-key key.pem  use TLS; then:\n"
    "                                            pawl --addr tls://localhost:7295 status\n"
    "  pawld --store etcd --etcd db1,db2,db3 --advertise db1:7295   one of several, of which\n"
    "                                            another takes over when the active one is lost\n"
    "  pawld dump --data /var/lib/pawl           print the contents of a store\n"
    "  pawld verify --data /var/lib/pawl         check that a store or a backup is complete\n"
    "  pawld restore --from /backups/pawl-1 --data /var/lib/pawl   create a store from a backup\n"
    "  pawld backup --etcd db1,db2,db3 --to /backups/pawl-2   copy a cluster out of etcd\n"
    "Then try:\n"
    "  redis-cli -p 7295 ACQUIRE hello TTL 15000\n"
    "  curl http://127.0.0.1:7296/v1/status\n"
    "Exit codes: 0 clean stop, 64 usage, 74 the store failed, 78 configuration or data in use.";

// The flags that were given, kept apart from the defaults because the file comes between them.
struct Flags {
  std::optional<std::string> data, resp, http, log_format, store, auth_file, tls_cert, tls_key,
      tls_client_ca, etcd, cluster, advertise;
  std::string config, port_file;
  bool check_config = false, print_config = false, must_exist = false, insecure = false;
  bool adopt = false, json = false;
  std::optional<Millis> wait;
  std::string machine_id_file;
  RestoreOptions restore;
  std::string backup_to;
};

constexpr const char* kVerifyExamples =
    "Examples:\n"
    "  pawld verify --data /var/lib/pawl\n"
    "  pawld verify --data /var/backups/pawl/2026-11-16 --json | jq .last_token\n"
    "Exit codes: 0 complete, 64 usage, 74 the disk failed, 78 damaged, in use, or not a store.";
constexpr const char* kRestoreExamples =
    "All leases of the backup are void. Tokens continue above the next multiple of 2^40.\n"
    "No lock is granted for the longest TTL that was allowed (10 minutes by default), so that\n"
    "leases granted after the backup can expire. A second restore of the same backup would\n"
    "issue the same tokens: pass the greatest token issued since then with --above (from\n"
    "pawld verify on the old data, pawl status, or a guard's fence).\n"
    "Examples:\n"
    "  pawld restore --from /var/backups/pawl/2026-11-16 --data /var/lib/pawl\n"
    "  pawld restore --from /var/backups/pawl/2026-11-16 --data /var/lib/pawl "
    "--above 1099511628000\n"
    "  pawld restore --from /var/backups/pawl/2026-11-16 --store etcd --etcd db1,db2,db3 "
    "--cluster prod\n"
    "Exit codes: 0 restored, 64 usage, 74 the disk failed, 78 not a valid backup, or the data\n"
    "directory is not empty, or etcd has a store of this cluster.";
constexpr const char* kBackupExamples =
    "It reads etcd, so it may run on any machine, whether pawld serve or not. A store that is not\n"
    "in etcd is backed up by the pawld that serves it: pawl backup DIR.\n"
    "Examples:\n"
    "  pawld backup --etcd db1,db2,db3 --cluster prod --to /var/backups/pawl/2026-11-16\n"
    "  pawld backup --config /etc/pawl/pawl.toml --to /var/backups/pawl/2026-11-16 --json\n"
    "Exit codes: 0 complete, 64 usage, 74 the disk failed or etcd does not answer, 78 there is no\n"
    "such store, or the directory cannot be used.";

// For serving, and for looking at what is stored.
void declare_etcd(CLI::App& app, Flags& flags) {
  app.add_option("--etcd", flags.etcd,
                 "With --store etcd: the addresses of etcd, as HOST:PORT,… (default port 2379)")
      ->check(not_empty);
  app.add_option(
         "--cluster", flags.cluster,
         "With --store etcd: the name that all pawld of one cluster have (default: default)")
      ->check(not_empty);
}

void declare(CLI::App& app, Flags& flags) {
  app.add_option("--data", flags.data, "Directory of the store (default pawl-data)")
      ->check(not_empty);
  app.add_option(
      "--resp", flags.resp,
      "Listen address for Redis clients (default 127.0.0.1:7295; port 0: any free port)");
  app.add_option("--http", flags.http,
                 "Listen address for HTTP clients (default 127.0.0.1:7296; port 0: any free port; "
                 "off: no HTTP)");
  app.add_option("--config", flags.config, "TOML file; flags override it");
  app.add_flag("--check-config", flags.check_config,
               "Check flags and configuration file, then exit");
  app.add_flag("--print-config", flags.print_config,
               "Print the effective settings as TOML, then exit");
  app.add_option("--log-format", flags.log_format, "text or json (default text), to stderr")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--must-exist", flags.must_exist,
               "Refuse a data directory that is missing or empty");
  app.add_flag("--adopt", flags.adopt,
               "Accept data that was last used on another machine; needed once");
  // For tests; not in the help.
  app.add_option("--machine-id-file", flags.machine_id_file)->group("");
  app.add_option("--auth-file", flags.auth_file,
                 "File of users, roles and prefixes, written by `pawl auth`; reloaded on SIGHUP "
                 "(default: no users, every client is an administrator)")
      ->check(not_empty);
  app.add_flag("--insecure", flags.insecure,
               "Allow a non-loopback listen address without users and TLS");
  app.add_option_function<std::string>(
         "--wait", [&flags](const std::string& text) { flags.wait = *read_wait(text); },
         "How long to wait for data or a port that another process still holds, as in a restart "
         "(default 10s; 0 = not at all)")
      ->check([](const std::string& text) {
        const auto wait = read_wait(text);
        return wait ? std::string() : wait.error().detail;
      })
      ->type_name("DURATION");
  app.add_option("--store", flags.store,
                 "journal: files of this machine; etcd: shared with other pawld, of which one is "
                 "active; or memory: for tests, lost when pawld stops (default journal)")
      ->check(CLI::IsMember({"journal", "etcd", "memory"}));
  declare_etcd(app, flags);
  app.add_option("--advertise", flags.advertise,
                 "With --store etcd: where clients reach this pawld, as HOST:PORT (default: the "
                 "address of --resp)")
      ->check(not_empty);
  app.add_option("--tls-cert", flags.tls_cert,
                 "PEM file: certificate, followed by intermediate certificates. Both ports then "
                 "accept TLS only");
  app.add_option("--tls-key", flags.tls_key,
                 "PEM file: private key of the certificate. Both files are reloaded on SIGHUP");
  app.add_option(
      "--tls-client-ca", flags.tls_client_ca,
      "PEM file: CA that signs client certificates; the common name of a certificate is its user");
  app.add_option("--port-file", flags.port_file,
                 "Write the RESP port to this file once clients can connect, and the HTTP port on "
                 "a second line");
}

struct Subcommands {
  CLI::App* init;
  CLI::App* dump;
  CLI::App* verify;
  CLI::App* restore;
  CLI::App* backup;
};

Subcommands declare_subcommands(CLI::App& app, Flags& flags) {
  CLI::App* init = app.add_subcommand(
      "init", "Create an empty store for --must-exist; an existing store is not changed");
  init->add_option("--data", flags.data, "Directory of the store (default pawl-data)")
      ->check(not_empty);
  init->add_option("--config", flags.config, "TOML file; flags override it");

  CLI::App* dump = app.add_subcommand("dump", "Print the contents of the store; changes nothing");
  dump->add_option("--data", flags.data, "Directory of the store (default pawl-data)")
      ->check(not_empty);
  dump->add_option("--config", flags.config, "TOML file; flags override it");
  dump->add_option("--store", flags.store, "journal or etcd (default journal)")
      ->check(CLI::IsMember({"journal", "etcd"}));
  declare_etcd(*dump, flags);

  CLI::App* verify =
      app.add_subcommand("verify", "Read all of a store or backup and check that it is complete");
  verify->add_option("--data", flags.data, "Directory of the store or backup (default pawl-data)")
      ->check(not_empty);
  verify->add_flag("--json", flags.json, "One JSON object");
  verify->footer(kVerifyExamples);

  CLI::App* restore = app.add_subcommand("restore", "Create a new store from a backup");
  restore->add_option("--from", flags.restore.from, "Directory of the backup")
      ->required()
      ->check(not_empty);
  restore->add_option("--data", flags.data, "Directory of the new store; must be missing or empty")
      ->check(not_empty);
  restore->add_option("--config", flags.config, "TOML file; flags override it");
  restore
      ->add_option("--store", flags.store,
                   "journal: create it in --data; etcd: create it in etcd (default journal)")
      ->check(CLI::IsMember({"journal", "etcd"}));
  declare_etcd(*restore, flags);
  restore->add_flag("--skip-wait", flags.restore.skip_wait,
                    "Grant at once; safe only if every resource has a guard");
  restore->add_option("--above", flags.restore.above, "Issue only tokens greater than this one")
      ->check(CLI::Range(std::uint64_t{0}, limits::kTokenMax));
  restore->add_flag("--json", flags.json, "One JSON object");
  restore->footer(kRestoreExamples);

  CLI::App* backup = app.add_subcommand(
      "backup", "Copy the store of a cluster out of etcd into a new directory, while it serves");
  backup->add_option("--to", flags.backup_to, "Directory of the backup; must not exist")
      ->required()
      ->check(not_empty);
  backup->add_option("--config", flags.config, "TOML file; flags override it");
  declare_etcd(*backup, flags);
  backup->add_flag("--json", flags.json, "One JSON object");
  backup->footer(kBackupExamples);
  return {init, dump, verify, restore, backup};
}

void override_with(const Flags& flags, Config& config) {
  if (flags.data) config.data = *flags.data;
  if (flags.resp) config.resp = *flags.resp;
  if (flags.auth_file) config.auth_file = *flags.auth_file;
  if (flags.http) config.http = flags.http->empty() ? kHttpOff : *flags.http;
  if (flags.log_format)
    config.log_format = *flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  if (flags.store) config.store = *parse_store(*flags.store);
  if (flags.etcd) config.etcd.endpoints = *flags.etcd;
  if (flags.cluster) config.etcd.cluster = *flags.cluster;
  if (flags.advertise) config.etcd.advertise = *flags.advertise;
  if (flags.tls_cert) config.tls.cert = *flags.tls_cert;
  if (flags.tls_key) config.tls.key = *flags.tls_key;
  if (flags.tls_client_ca) config.tls.client_ca = *flags.tls_client_ca;
  config.journal.must_exist |= flags.must_exist;
  config.insecure |= flags.insecure;
  if (flags.wait) config.wait = *flags.wait;
}

std::optional<Action> offline_action(const Subcommands& subcommands) {
  if (subcommands.init->parsed()) return Action::kInit;
  if (subcommands.dump->parsed()) return Action::kDump;
  if (subcommands.verify->parsed()) return Action::kVerify;
  if (subcommands.restore->parsed()) return Action::kRestore;
  if (subcommands.backup->parsed()) return Action::kBackup;
  return std::nullopt;
}

ParsedOptions end_with(int exit_code, std::string_view message) {
  fmt::print(stderr, "pawld: {}\n", message);
  return {std::nullopt, exit_code};
}

// What other servers call the address to listen on.
constexpr std::array kListenOptions{"--listen", "--port", "--addr", "--host", "--bind"};

// What is wrong with a line that has words which pawld does not take; the first of them tells.
std::string unknown_word(const CLI::App& app) {
  const CLI::App* command = &app;
  for (const CLI::App* used : app.get_subcommands()) command = used;
  std::vector<std::string> extras = command->remaining();
  if (extras.empty()) extras = app.remaining();
  std::erase(extras, "--");
  if (extras.empty()) return "what follows -- is not taken";
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  if (option == extras.end()) return fmt::format("unexpected: {}", fmt::join(extras, " "));
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* known : command->get_options())
    for (const std::string& known_name : known->get_lnames()) names.push_back("--" + known_name);
  auto meant = closest_word(name, names);
  if (!meant &&
      std::find(kListenOptions.begin(), kListenOptions.end(), name) != kListenOptions.end())
    meant = "--resp (for Redis clients and pawl) or --http";
  return fmt::format("unknown option {}{}", name,
                     meant ? fmt::format("; did you mean {}?", *meant) : "");
}

// The error of a pawld that was to serve: a program that reads its log as JSON reads this as well.
ParsedOptions end_service(int exit_code, std::string_view message, LogFormat format) {
  if (format == LogFormat::kText) return end_with(exit_code, message);
  open_log(format)->error(message);
  return {std::nullopt, exit_code};
}

// The store of a command that does not serve: the flags say which.
ParsedOptions choose_store(const Flags& flags, Options options) {
  if (options.action == Action::kBackup) {
    options.backup_to = flags.backup_to;
    options.config.store = StoreKind::kEtcd;
  }
  if (options.action == Action::kRestore) {
    if (flags.data && !flags.store) options.config.store = StoreKind::kJournal;
    if (!flags.data && options.config.store != StoreKind::kEtcd) {
      return end_with(kExitUsage,
                      "restore needs --data DIR, or --store etcd (see pawld restore --help)");
    }
  }
  return {options, kExitOk};
}

Result<void> check_users(const Config& config) {
  if (config.auth_file.empty()) return {};
  const auto users = auth::load_users(config.auth_file);
  return users ? Result<void>() : users.error();
}

// Checks that the files can be used, not only that they exist; --check-config relies on it.
Result<void> check_tls(const Config& config) {
  if (!config.tls.configured()) return {};
  const auto loaded = tls::ServerContext::load(config.tls);
  return loaded ? Result<void>() : loaded.error();
}

// If other machines can reach the port there must be users, and TLS to protect their secrets.
Result<void> check_listen(const std::string& listen, const Config& config) {
  const auto address = server::parse_listen_address(listen);
  if (!address) return address.error();
  const auto loopback = server::is_loopback(*address);
  if (!loopback) return loopback.error();
  if (*loopback || config.insecure) return {};
  if (!config.auth_file.empty() && config.tls.configured()) return {};
  const char* why =
      config.auth_file.empty()
          ? "there is no auth_file, so anyone could take and break locks"
          : "there is no TLS, so anyone on the network could read the secrets of users";
  return Error{
      Code::kInvalid,
      fmt::format(
          "refusing to listen on {}: other machines can reach it, and {}. Listen on 127.0.0.1, "
          "configure both auth_file and TLS, or add --insecure if the network itself is trusted",
          listen, why)};
}

Result<void> check_store(const Config& config) {
  if (config.store == StoreKind::kEtcd) return check_cluster(config.etcd, config.resp);
  if (config.etcd.endpoints.empty()) return {};
  return Error{Code::kInvalid, fmt::format("--etcd is set, but the store is {}: add --store etcd",
                                           store_name(config.store))};
}

Result<void> check_listens(const Config& config) {
  if (auto resp = check_listen(config.resp, config); !resp) return resp;
  if (config.http == kHttpOff) return {};
  return check_listen(config.http, config);
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  CLI::App app{
      "pawld: a lock service. Every grant carries a fencing token and is on disk before it is "
      "answered",
      "pawld"};
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("pawld {}", kVersion));
  Flags flags;
  declare(app, flags);
  const Subcommands subcommands = declare_subcommands(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_text) {
    return {std::nullopt, app.exit(asked_for_text)};
  } catch (const CLI::ExtrasError&) {
    return end_with(kExitUsage, fmt::format("{} (see pawld --help)", unknown_word(app)));
  } catch (const CLI::ParseError& error) {
    return end_with(kExitUsage, fmt::format("{} (see pawld --help)", error.what()));
  }

  Options options;
  const auto offline = offline_action(subcommands);
  // The error of a pawld that was to serve goes to its log, in the format that is known so far.
  const auto fail = [&](const Error& error) {
    const bool serves = !offline && !flags.check_config && !flags.print_config;
    return end_service(kExitConfig, error.detail,
                       serves ? options.config.log_format : LogFormat::kText);
  };
  const auto read =
      flags.config.empty() ? Result<void>() : read_config(flags.config, options.config);
  override_with(flags, options.config);
  if (!read) return fail(read.error());
  options.config_file = flags.config;
  options.port_file = flags.port_file;
  options.adopt = flags.adopt;
  options.json = flags.json;
  options.restore = flags.restore;
  if (!flags.config.empty()) {
    options.restore.wait_at_least = options.config.max_ttl + options.config.max_delay;
  }
  if (!flags.machine_id_file.empty()) options.machine_id_file = flags.machine_id_file;
  if (offline) {
    options.action = *offline;
    return choose_store(flags, std::move(options));
  }
  for (const auto check : {check_listens, check_users, check_tls, check_store}) {
    if (const auto right = check(options.config); !right) return fail(right.error());
  }
  if (flags.check_config) options.action = Action::kCheckConfig;
  if (flags.print_config) options.action = Action::kPrintConfig;
  return {options, kExitOk};
}

}  // namespace pawl::pawld
