// pawl completion: scripts for bash, zsh and fish, generated from the declaration of the verbs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

struct Option {
  std::vector<std::string> longs, shorts;  // without dashes
  bool takes_value = false;
  std::string help;
};

struct Command {
  std::string name, help;
  std::vector<Option> options;
  std::vector<std::string> words;  // what its argument may be, when it is one of a few
};

// CLI11 shows a choice as "…{bash,zsh,fish}".
std::vector<std::string> choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto left = type.find('{'), right = type.find('}');
  if (left == std::string::npos || right == std::string::npos || right < left) return {};
  return CLI::detail::split(type.substr(left + 1, right - left - 1), ',');
}

bool has_option(const Command& command, const Option& option) {
  const auto same = [&](const Option& known) {
    return known.longs == option.longs && known.shorts == option.shorts;
  };
  return std::any_of(command.options.begin(), command.options.end(), same);
}

// A group gets the options of all its verbs: better a few options too many than scripts for three
// shells that parse command lines.
Command describe(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (app.get_parent() == nullptr)
      break;  // pawl itself: its verbs have descriptions of their own
    command.words.push_back(verb->get_name());
    for (const Option& option : describe(*verb).options) {
      if (!has_option(command, option)) command.options.push_back(option);
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      if (const auto words = choices(*option); !words.empty()) command.words = words;
      continue;
    }
    Option described{option->get_lnames(), option->get_snames(),
                     option->get_items_expected_max() > 0, option->get_description()};
    if (!has_option(command, described)) command.options.push_back(std::move(described));
  }
  return command;
}

std::vector<Command> describe_verbs(const CLI::App& root) {
  std::vector<Command> verbs;
  for (const CLI::App* verb :
       root.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); })) {
    verbs.push_back(describe(*verb));
  }
  return verbs;
}

std::string all_words(const Command& command) {
  std::string list = fmt::format("{}", fmt::join(command.words, " "));
  for (const Option& option : command.options) {
    for (const auto& name : option.longs) list += " --" + name;
    for (const auto& name : option.shorts) list += " -" + name;
  }
  return list;
}

std::string names(const std::vector<Command>& verbs, const char* separator) {
  std::vector<std::string> list;
  for (const Command& verb : verbs) list.push_back(verb.name);
  return fmt::format("{}", fmt::join(list, separator));
}

std::string replaced(std::string text, char what, std::string_view with) {
  std::string out;
  for (const char c : text) c == what ? out.append(with) : out.append(1, c);
  return out;
}

std::string bash(const Command& root, const std::vector<Command>& verbs) {
  std::string cases;
  for (const Command& verb : verbs)
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, all_words(verb));
  return fmt::format(
      "# bash completion for pawl. Load it with: source <(pawl completion bash)\n"
      "_pawl() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} verb= word words\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case $word in {}) verb=$word; break ;; esac\n"
      "  done\n"
      "  case $verb in\n{}"
      "    *) words=\"{} {}\" ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}}\n"
      "complete -F _pawl pawl\n",
      names(verbs, "|"), cases, names(verbs, " "), all_words(root));
}

// Inside '…' and inside the brackets of _arguments.
std::string zsh_help(const std::string& text) {
  return replaced(replaced(replaced(replaced(text, '\'', "'\\''"), '[', "\\["), ']', "\\]"), ':',
                  "\\:");
}

std::string zsh_options(const Command& verb) {
  std::string out;
  for (const Option& option : verb.options) {
    const char* value = option.takes_value ? ":value:" : "";
    for (const auto& name : option.longs)
      out += fmt::format(" '--{}[{}]{}'", name, zsh_help(option.help), value);
    for (const auto& name : option.shorts)
      out += fmt::format(" '-{}[{}]{}'", name, zsh_help(option.help), value);
  }
  if (!verb.words.empty()) out += fmt::format(" '1:argument:({})'", fmt::join(verb.words, " "));
  return out;
}

std::string zsh(const std::vector<Command>& verbs) {
  std::string list, cases;
  for (const Command& verb : verbs) {
    list += fmt::format(" '{}:{}'", verb.name, zsh_help(verb.help));
    cases += fmt::format("    {}) _arguments{} ;;\n", verb.name, zsh_options(verb));
  }
  return fmt::format(
      "#compdef pawl\n"
      "# zsh completion for pawl. Load it with: source <(pawl completion zsh), or keep it as _pawl "
      "in $fpath.\n"
      "_pawl() {{\n"
      "  local -a verbs\n"
      "  verbs=({})\n"
      "  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n"
      "  local verb=$words[2]\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case $verb in\n{}"
      "  esac\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = _pawl ]; then _pawl \"$@\"; else compdef _pawl pawl; fi\n",
      list, cases);
}

std::string fish_help(const std::string& text) {
  return replaced(replaced(text, '\\', "\\\\"), '\'', "\\'");
}

std::string fish(const std::vector<Command>& verbs) {
  std::string out =
      "# fish completion for pawl. Load it with: pawl completion fish | source\ncomplete -c pawl "
      "-f\n";
  for (const Command& verb : verbs) {
    out += fmt::format("complete -c pawl -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                       fish_help(verb.help));
    const std::string when =
        fmt::format("complete -c pawl -n '__fish_seen_subcommand_from {}'", verb.name);
    if (!verb.words.empty()) out += fmt::format("{} -a '{}'\n", when, fmt::join(verb.words, " "));
    for (const Option& option : verb.options) {
      out += when;
      for (const auto& name : option.longs) out += " -l " + name;
      for (const auto& name : option.shorts) out += " -s " + name;
      out += fmt::format("{} -d '{}'\n", option.takes_value ? " -r" : "", fish_help(option.help));
    }
  }
  return out;
}

int completion(Console& console, const CLI::App& app, const std::string& shell) {
  const Command root = describe(app);
  const auto verbs = describe_verbs(app);
  const std::string script = shell == "bash"  ? bash(root, verbs)
                             : shell == "zsh" ? zsh(verbs)
                                              : fish(verbs);
  if (!console.json()) return console.data(script) ? kExitOk : kExitOutput;
  Json json;
  json.object().key("shell").string(shell).key("script").string(script).end();
  return console.data(json) ? kExitOk : kExitOutput;
}

}  // namespace

void add_completion(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  Verb verb = line.verb("completion", "print a completion script for your shell", Talks::kToNobody);
  verb.choice("SHELL", *shell, {"bash", "zsh", "fish"}, "bash, zsh or fish");
  verb.examples(
      "  source <(pawl completion bash)\n"
      "  pawl completion fish > ~/.config/fish/completions/pawl.fish");
  verb.run([shell, &line](Console& console) { return completion(console, line.app(), *shell); });
}

}  // namespace pawl::cli
