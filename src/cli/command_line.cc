#include "cli/command_line.h"
#include "base/suggestion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/duration.h"
#include "base/text.h"
#include "cli/credentials.h"
#include "cli/exit_codes.h"
#include "cli/shell_word.h"
#include "cli/verbs.h"
#include "client/address.h"

namespace pawl::cli {
namespace {

constexpr const char* kAbout = "pawl: locks with fencing tokens, which a guarded resource checks.";
constexpr const char* kFooter =
    "Try `pawl acquire hello`, then `pawl show hello`; `pawl help VERB` has examples.\n"
    "Exit codes: 0 done, 64 usage, 69 pawld unreachable or not able to do it now, 75 not "
    "acquired,\n"
    "77 not permitted, 78 configuration, 122 the lease is over. stdout is data, stderr is for\n"
    "people; --json is for programs.";
constexpr const char* kDefaultAddress = "127.0.0.1:7295";

CLI::Option* find(CLI::App& app, const char* name) {
  return app.get_option(name);
}

void add_globals(CLI::App& app, std::string& addresses, std::string& auth_file, bool& json,
                 Talks talks) {
  if (talks == Talks::kToPawld) {
    // An empty value is mostly a variable that is not set: it must not mean another pawld.
    const auto not_empty = [](const std::string& text) {
      return text.empty() ? "must not be empty (is a variable not set?)" : std::string();
    };
    app.add_option("--addr", addresses,
                   "where pawld listens: host:port[,host:port], tls://host:port (PAWL_ADDR; "
                   "default 127.0.0.1:7295)")
        ->type_name("LIST")
        ->check(not_empty);
    app.add_option("--auth-file", auth_file,
                   "a file whose first line is user:secret (default: PAWL_AUTH)")
        ->type_name("FILE")
        ->check(not_empty);
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

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

// "pawl guard install"
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

// The words of the line that this command does not take, in the order they were typed.
std::vector<std::string> extras_of(const CLI::App& app) {
  std::vector<std::string> extras = app.remaining();
  std::erase(extras, "--");
  return extras;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_word(const CLI::App& app, const std::vector<std::string>& extras) {
  const auto verbs = verb_names(app);
  const auto verb = std::find_if_not(extras.begin(), extras.end(), is_option);
  const bool is_verb = !verbs.empty() && verb != extras.end();
  const std::string& word = is_verb ? *verb : extras.front();
  const std::string what = is_verb ? fmt::format("there is no verb \"{}\"", word)
                           : is_option(word)
                               ? fmt::format("unknown option {}", word)
                               : fmt::format("unexpected: {}", fmt::join(extras, " "));
  const auto meant = is_verb           ? closest_word(word, verbs)
                     : is_option(word) ? closest_word(word, option_names(app))
                                       : std::nullopt;
  return printable(what) + (meant ? fmt::format("; did you mean {}?", *meant) : "");
}

// The line with `--` in front of the first word that was not taken.
std::string with_dashes(const std::vector<std::string>& words,
                        const std::vector<std::string>& extras) {
  const std::string& first = extras.front();
  // Equal words before it were taken, such as LOCK in `pawl run make make`.
  auto taken = std::count(words.begin() + 1, words.end(), first) -
               std::count(extras.begin(), extras.end(), first);
  std::string line = "pawl";
  bool dashed = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!dashed && words[i] == first && taken-- == 0) {
      line += " --";
      dashed = true;
    }
    line += " " + shell_word(words[i]);
  }
  return printable(line);
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

void Verb::words(const char* name, std::vector<std::string>& into, const char* help) {
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

void Verb::hidden_flag(const char* name, bool& into) {
  app_.add_flag(name, into)->group("");
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
  app_.callback([this_line = &line_, app = &app_, action = std::move(action), talks] {
    // `pawl gate status` is not `pawl gate`.
    if (!app->get_subcommands().empty()) return;
    this_line->action_ = action;
    this_line->talks_ = talks ? Talks::kToPawld : Talks::kToNobody;
  });
}

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>(kAbout, "pawl")) {
  app_->require_subcommand(0, 1);  // A missing verb and an unknown one are distinguished below.
  app_->footer(kFooter);
  app_->set_version_flag("--version", "pawl", "print the version of this pawl");
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

Result<std::string> CommandLine::help_of(const std::vector<std::string>& verbs) const {
  const CLI::App* app = app_.get();
  for (const std::string& verb : verbs) {
    const auto found =
        app->get_subcommands([&](const CLI::App* inner) { return inner->get_name() == verb; });
    if (found.empty()) return Error{Code::kInvalid, unknown_word(*app, {verb})};
    app = found.front();
  }
  // Not app->help(), which prints the help of the verb that was parsed: of `help`.
  return app->get_formatter()->make_help(app, full_name(*app), CLI::AppFormatMode::Normal);
}

std::optional<std::string> CommandLine::unknown_verb() const {
  const CLI::App& app = named();
  const auto extras = extras_of(app);
  if (verb_names(app).empty() || std::all_of(extras.begin(), extras.end(), is_option))
    return std::nullopt;
  return unknown_word(app, extras);
}

int CommandLine::usage_error(Console& console, const std::string& what) const {
  return console.fail_usage(full_name(named()), what);
}

bool CommandLine::wants_json(const std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), dashes, "--json") != dashes;
}

std::optional<std::string> CommandLine::describe_extras(
    const std::vector<std::string>& words) const {
  for (const CLI::App* app = app_.get();; app = app->get_subcommands().front()) {
    const auto extras = extras_of(*app);
    if (!extras.empty()) {
      const bool takes_command = rests_.contains(app->get_name());
      const bool dashed = std::find(words.begin(), words.end(), "--") != words.end();
      if (takes_command && !dashed && !is_option(extras.front()))
        return fmt::format("write `--` in front of the command: {}", with_dashes(words, extras));
      return unknown_word(*app, extras);
    }
    if (app->get_subcommands().empty()) return std::nullopt;
  }
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

Result<Console::Settings> CommandLine::settings(bool json, int& exit_code) const {
  Console::Settings settings{.json = json,
                             .addresses = {},
                             .auth = {},
                             .address_given = !addresses_.empty(),
                             .auth_file = auth_file_};
  if (talks_ == Talks::kToNobody) return settings;
  auto addresses = addresses_from(addresses_, exit_code);
  if (!addresses) {
    const char* source = exit_code == kExitUsage ? "--addr" : "PAWL_ADDR";
    return Error{Code::kInvalid, fmt::format("{}: {}", source, addresses.error().detail)};
  }
  exit_code = kExitConfiguration;
  if (const auto ready = use_tls(*addresses); !ready) {
    return Error{Code::kInvalid,
                 fmt::format("PAWL_TLS_CA, PAWL_TLS_CERT, PAWL_TLS_KEY: {}", ready.error().detail)};
  }
  auto auth = find_credentials(auth_file_);
  if (!auth) return auth.error();
  settings.addresses = std::move(*addresses);
  settings.auth = std::move(*auth);
  return settings;
}

int CommandLine::main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  Console errors({.json = wants_json(words), .addresses = {}, .auth = {}, .auth_file = {}});
  try {
    // Not left to CLI11, which would read "[a,b]" in a command as a list.
    app_->parse(split_rest(argc, argv), argv);
  } catch (const CLI::CallForVersion&) {
    return print_version(errors);
  } catch (const CLI::Success& asked_for_text) {
    // `pawl rn --help` would print the help of pawl, as if there were a verb `rn`.
    if (const auto unknown = unknown_verb()) return usage_error(errors, *unknown);
    return app_->exit(asked_for_text);
  } catch (const CLI::ParseError& error) {
    return usage_error(errors, describe_extras(words).value_or(error.what()));
  }
  if (!action_) {
    const auto verbs = verb_names(named());
    return usage_error(errors, &named() != app_.get()
                                   ? fmt::format("name one of: {}", fmt::join(verbs, ", "))
                                   : "name a verb, such as `pawl status`");
  }
  int exit_code = kExitUsage;
  auto chosen = settings(json_, exit_code);
  if (!chosen) return errors.fail(chosen.error(), exit_code);
  Console console(std::move(*chosen));
  return action_(console);
}

}  // namespace pawl::cli
