#include "pawld/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/version.h"
#include "pawld/exit_codes.h"
#include "server/listener.h"

namespace pawl::pawld {
namespace {

// CLI11's form of a check: what is wrong, or nothing.
std::string not_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

constexpr const char* kExamples =
    "Examples:\n"
    "  pawld                                     serve on loopback, data in ./pawl-data\n"
    "  pawld --data /var/lib/pawl --must-exist   as a service: never start on an unmounted volume\n"
    "  pawld --config pawld.toml --check-config  say whether the file is right\n"
    "  pawld dump --data /var/lib/pawl           print a store for people\n"
    "Then try:\n"
    "  redis-cli -p 7295 ACQUIRE hello TTL 15000\n"
    "  curl http://127.0.0.1:7296/v1/status\n"
    "Exit codes: 0 clean stop, 64 usage, 74 the store failed, 78 configuration or data in use.";

// What the command line said, kept apart from the defaults so that the file can come between them.
struct Flags {
  std::optional<std::string> data, resp, http, log_format, store;
  std::string config, port_file;
  bool check_config = false, print_config = false, must_exist = false, insecure = false;
};

void declare(CLI::App& app, Flags& flags) {
  app.add_option("--data", flags.data, "Directory of the store (default pawl-data)")->check(not_empty);
  app.add_option("--resp", flags.resp,
                 "Where Redis clients connect (default 127.0.0.1:7295; port 0 = any free one)");
  app.add_option("--http", flags.http,
                 "Where HTTP clients connect (default 127.0.0.1:7296; port 0 = any free one; off = nowhere)");
  app.add_option("--config", flags.config, "TOML file; flags win over it");
  app.add_flag("--check-config", flags.check_config, "Check flags and file, then exit");
  app.add_flag("--print-config", flags.print_config, "Print the settings in force as TOML, then exit");
  app.add_option("--log-format", flags.log_format, "text or json (default text), to stderr")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--must-exist", flags.must_exist, "Refuse a data directory that is missing or empty");
  app.add_flag("--insecure", flags.insecure, "Allow a listen address that other machines can reach");
  app.add_option("--store", flags.store, "journal, or memory for tests: nothing survives (default journal)")
      ->check(CLI::IsMember({"journal", "memory"}));
  app.add_option(
      "--port-file", flags.port_file,
      "Write the bound port to this file once clients can connect, and that of HTTP on a second line");
}

void override_with(const Flags& flags, Config& config) {
  if (flags.data) config.data = *flags.data;
  if (flags.resp) config.resp = *flags.resp;
  if (flags.http) config.http = flags.http->empty() ? kHttpOff : *flags.http;
  if (flags.log_format) config.log_format = *flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  if (flags.store) config.store = *flags.store == "memory" ? StoreKind::kMemory : StoreKind::kJournal;
  config.journal.must_exist |= flags.must_exist;
  config.insecure |= flags.insecure;
}

ParsedOptions end_with(int exit_code, std::string_view message) {
  fmt::print(stderr, "pawld: {}\n", message);
  return {std::nullopt, exit_code};
}

// Until there are credentials, whoever reaches the port is an administrator.
Result<void> check_listen(const std::string& listen, const Config& config) {
  const auto address = server::parse_listen_address(listen);
  if (!address) return address.error();
  const auto loopback = server::is_loopback(*address);
  if (!loopback) return loopback.error();
  if (*loopback || config.insecure) return {};
  return Error{
      Code::kInvalid,
      fmt::format(
          "refusing to listen on {}: other machines can reach it, and pawld has no authentication yet, so "
          "anyone there could take and break locks. Listen on 127.0.0.1, or add --insecure if the network "
          "itself is trusted",
          listen)};
}

Result<void> check_listens(const Config& config) {
  if (auto resp = check_listen(config.resp, config); !resp) return resp;
  if (config.http == kHttpOff) return {};
  return check_listen(config.http, config);
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  CLI::App app{"pawld: a lock service whose every grant carries a fencing token, durable before it is told",
               "pawld"};
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("pawld {}", kVersion));
  Flags flags;
  declare(app, flags);
  CLI::App* dump = app.add_subcommand("dump", "Print the store for people; changes nothing");
  dump->add_option("--data", flags.data, "Directory of the store (default pawl-data)")->check(not_empty);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_text) {
    return {std::nullopt, app.exit(asked_for_text)};
  } catch (const CLI::ParseError& error) {
    return end_with(kExitUsage, fmt::format("{} (pawld --help shows what there is)", error.what()));
  }

  Options options;
  if (!flags.config.empty()) {
    if (const auto read = read_config(flags.config, options.config); !read)
      return end_with(kExitConfig, read.error().detail);
  }
  override_with(flags, options.config);
  options.port_file = flags.port_file;
  if (dump->parsed()) {
    options.action = Action::kDump;
    return {options, kExitOk};
  }
  if (const auto listen = check_listens(options.config); !listen)
    return end_with(kExitConfig, listen.error().detail);
  if (flags.check_config) options.action = Action::kCheckConfig;
  if (flags.print_config) options.action = Action::kPrintConfig;
  return {options, kExitOk};
}

}  // namespace pawl::pawld
