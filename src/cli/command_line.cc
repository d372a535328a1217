#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/duration.h"
#include "cli/credentials.h"
#include "cli/exit_codes.h"
#include "client/address.h"

namespace pawl::cli {
namespace {

constexpr const char* kAbout = "pawl: locks with fencing tokens, which a guarded resource checks.";
constexpr const char* kFooter =
    "Try `pawl acquire hello`, then `pawl show hello`; `pawl VERB --help` has examples.\n"
    "Exit codes: 0 done, 64 usage, 69 pawld unreachable, 75 not acquired, 77 not permitted, 78 "
    "configuration,\n"
    "122 the lease is over. stdout is data, stderr is for people; --json is for programs.";
constexpr const char* kDefaultAddress = "127.0.0.1:7295";

CLI::Option* find(CLI::App& app, const char* name) {
  return app.get_option(name);
}

void add_globals(CLI::App& app, std::string& addresses, std::string& auth_file, bool& json,
                 Talks talks) {
  if (talks == Talks::kToPawld) {
    app.add_option("--addr", addresses,
                   "where pawld listens: host:port[,host:port], tls://host:port (PAWL_ADDR; "
                   "default 127.0.0.1:7295)")
        ->type_name("LIST");
    app.add_option("--auth-file", auth_file,
                   "a file whose first line is user:secret (default: PAWL_AUTH)")
        ->type_name("FILE");
  }
  app.add_flag("--json", json, "one JSON document on stdout, for programs");
}

// CLI11 does not see the command after `--`: split_rest() removes it first.
class UsageWithCommand final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    const auto end = usage.find_last_not_of('\n') + 1;
    return usage.insert(end, " -- CMD…");
  }
};

// --addr, else PAWL_ADDR, else loopback. A wrong flag is a usage error, a wrong environment a
// configuration error.
Result<std::vector<client::Address>> addresses_from(const std::string& flag, int& exit_code) {
  exit_code = kExitUsage;
  if (!flag.empty()) return client::parse_addresses(flag);
  const char* environment = std::getenv("PAWL_ADDR");
  if (environment == nullptr || *environment == '\0')
    return client::parse_addresses(kDefaultAddress);
  exit_code = kExitConfiguration;
  return client::parse_addresses(environment);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// With the files that the environment names.
Result<void> use_tls(std::vector<client::Address>& addresses) {
  return client::use_tls(addresses, {.ca = environment("PAWL_TLS_CA"),
                                     .cert = environment("PAWL_TLS_CERT"),
                                     .key = environment("PAWL_TLS_KEY")});
}

}  // namespace

void Verb::required(const char* name, std::string& into, const char* help) {
  app_.add_option(name, into, help)->required()->type_name("");
}

void Verb::optional(const char* name, std::string& into, const char* help) {
  app_.add_option(name, into, help)->type_name("");
}

void Verb::choice(const char* name, std::string& into, const std::vector<std::string>& words,
                  const char* help) {
  app_.add_option(name, into, help)->required()->check(CLI::IsMember(words));
}

void Verb::optional_choice(const char* name, std::string& into,
                           const std::vector<std::string>& words, const char* help) {
  app_.add_option(name, into, help)->check(CLI::IsMember(words));
}

void Verb::flag(const char* names, bool& into, const char* help) {
  app_.add_flag(names, into, help);
}

void Verb::text(const char* names, const char* shown, std::string& into, const char* help) {
  app_.add_option(names, into, help)->type_name(shown);
}

void Verb::texts(const char* names, const char* shown, std::vector<std::string>& into,
                 const char* help) {
  // One value each time, so that it never consumes the following arguments.
  app_.add_option(names, into, help)
      ->type_name(shown)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Verb::number(const char* names, std::uint64_t& into, const char* help) {
  // Digits only: CLI11 would turn -1 into 2^64 − 1.
  const auto take = [names, &into](const std::string& text) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), into);
    if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
      throw CLI::ValidationError(names, fmt::format("\"{}\" is not a whole number", text));
    }
  };
  app_.add_option_function<std::string>(names, take, help)->type_name("N");
}

void Verb::duration(const char* names, Millis& into, const char* help) {
  const auto take = [names, &into](const std::string& text) {
    const auto parsed = parse_duration(text);
    if (!parsed) throw CLI::ValidationError(names, parsed.error().detail);
    into = *parsed;
  };
  app_.add_option_function<std::string>(names, take, help)->type_name("DUR");
}

void Verb::rest(std::vector<std::string>& into) {
  line_.rests_[app_.get_name()] = &into;
  app_.formatter(std::make_shared<UsageWithCommand>());
}

void Verb::must_have(const char* name) {
  find(app_, name)->required();
}

void Verb::not_both(const char* name, const char* other) {
  find(app_, name)->excludes(find(app_, other));
}

void Verb::examples(const char* text) {
  app_.footer(fmt::format("Examples:\n{}", text));
}

void Verb::hide() {
  app_.group("");
}

void Verb::run(std::function<int(Console&)> action) {
  const bool talks = app_.get_option_no_throw("--addr") != nullptr;
  app_.callback([this_line = &line_, action = std::move(action), talks] {
    this_line->action_ = action;
    this_line->talks_ = talks ? Talks::kToPawld : Talks::kToNobody;
  });
}

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>(kAbout, "pawl")) {
  app_->require_subcommand(0, 1);  // A missing verb and an unknown one are distinguished below.
  app_->footer(kFooter);
  add_globals(*app_, addresses_, auth_file_, json_, Talks::kToPawld);
}

CommandLine::~CommandLine() = default;

Verb CommandLine::verb(const char* name, const char* help, Talks talks) {
  CLI::App* app = app_->add_subcommand(name, help);
  add_globals(*app, addresses_, auth_file_, json_, talks);
  return {*this, *app};
}

Verb CommandLine::verb(const char* group, const char* name, const char* help, Talks talks) {
  CLI::App* app = app_->get_subcommand(group)->add_subcommand(name, help);
  add_globals(*app, addresses_, auth_file_, json_, talks);
  return {*this, *app};
}

void CommandLine::group(const char* name, const char* help, const char* footer) {
  app_->add_subcommand(name, help)->require_subcommand(0, 1)->footer(footer);
}

const CLI::App& CommandLine::named() const {
  const CLI::App* app = app_.get();
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

int CommandLine::usage_error(const std::string& what) const {
  std::string where = named().get_name();
  for (const CLI::App* app = &named(); app->get_parent() != nullptr; app = app->get_parent()) {
    where = app->get_parent()->get_name() + " " + where;
  }
  fmt::print(stderr, "{}: {}\nTry `{} --help`.\n", where, what, where);
  return kExitUsage;
}

int CommandLine::split_rest(int argc, char** argv) const {
  const std::vector<std::string> words(argv, argv + argc);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const auto verb = std::find_if(words.begin() + 1, dashes, [this](const std::string& word) {
    const auto is_word = [&](const CLI::App* app) { return app->get_name() == word; };
    return !std::as_const(*app_).get_subcommands(is_word).empty();
  });
  if (dashes == words.end() || verb == dashes) return argc;
  const auto taker = rests_.find(*verb);
  if (taker == rests_.end()) return argc;
  taker->second->assign(dashes + 1, words.end());
  return static_cast<int>(dashes - words.begin());
}

int CommandLine::main(int argc, char** argv) {
  try {
    // Not left to CLI11, which would read "[a,b]" in a command as a list.
    app_->parse(split_rest(argc, argv), argv);
  } catch (const CLI::CallForHelp& help) {
    return app_->exit(help);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (!action_) {
    const bool in_group = &named() != app_.get();
    return usage_error(in_group ? "name one of its subcommands"
                                : "name a verb, such as `pawl status`");
  }
  int exit_code = kExitUsage;
  auto addresses = addresses_from(addresses_, exit_code);
  if (talks_ == Talks::kToPawld && !addresses) {
    const char* source = exit_code == kExitUsage ? "--addr" : "PAWL_ADDR";
    fmt::print(stderr, "pawl: {}: {}\n", source, addresses.error().detail);
    return exit_code;
  }
  if (talks_ == Talks::kToPawld) {
    if (const auto ready = use_tls(*addresses); !ready) {
      fmt::print(stderr, "pawl: PAWL_TLS_CA, PAWL_TLS_CERT, PAWL_TLS_KEY: {}\n",
                 ready.error().detail);
      return kExitConfiguration;
    }
  }
  auto auth = talks_ == Talks::kToPawld ? find_credentials(auth_file_) : Result<Auth>(Auth{});
  if (!auth) {
    fmt::print(stderr, "pawl: {}\n", auth.error().detail);
    return kExitConfiguration;
  }
  Console console({json_, addresses ? std::move(*addresses) : std::vector<client::Address>{},
                   std::move(*auth), !addresses_.empty()});
  return action_(console);
}

}  // namespace pawl::cli
