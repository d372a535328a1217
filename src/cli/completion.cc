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

// What a value can be.
struct Values {
  std::vector<std::string> words;  // one of these, when there are any
  bool files = false;
  bool locks = false;  // names of locks, which `pawl ls` lists
};

struct Option {
  std::vector<std::string> longs, shorts;  // without dashes
  bool takes_value = false;
  Values values;
  std::string help;
};

struct Command {
  std::string name;  // with its group: "guard install"; empty: pawl itself
  std::string help;
  std::vector<Option> options;
  std::vector<Values> arguments;   // by position
  std::vector<std::string> verbs;  // of a group
  bool takes_command = false;      // behind `--`
};

// CLI11 shows a choice as "…{bash,zsh,fish}"; our own options as "stop|kill|ignore".
std::vector<std::string> choices(const std::string& type) {
  const auto left = type.find('{'), right = type.find('}');
  if (left != std::string::npos && right != std::string::npos && left < right)
    return CLI::detail::split(type.substr(left + 1, right - left - 1), ',');
  if (type.find('|') == std::string::npos) return {};
  std::vector<std::string> words = CLI::detail::split(type, '|');
  // What stands for other words is in capitals: "report|ignore|SIGNAL".
  std::erase_if(words, [](const std::string& word) {
    return std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  });
  return words;
}

Values values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = option.get_positional() ? option.get_name() : type;
  return {choices(type), name == "FILE" || name == "PATH" || name == "DIR", name == "LOCK"};
}

Command describe(const CLI::App& app, const std::string& name, bool takes_command) {
  Command command{name, app.get_description(), {}, {}, {}, takes_command};
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    command.verbs.push_back(verb->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.arguments.push_back(values_of(*option));
    } else if (!option->get_group().empty()) {
      command.options.push_back({option->get_lnames(), option->get_snames(),
                                 option->get_items_expected_max() > 0, values_of(*option),
                                 option->get_description()});
    }
  }
  return command;
}

// All commands, a group before its verbs; pawl itself first.
std::vector<Command> describe_all(const CommandLine& line) {
  std::vector<Command> commands;
  const auto add = [&](auto& self, const CLI::App& app, const std::string& name) -> void {
    commands.push_back(describe(app, name, line.takes_command(name)));
    for (const CLI::App* verb :
         app.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
      self(self, *verb, (name.empty() ? "" : name + " ") + verb->get_name());
  };
  add(add, line.app(), "");
  return commands;
}

std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> list;
  for (const auto& name : option.longs) list.push_back("--" + name);
  for (const auto& name : option.shorts) list.push_back("-" + name);
  return list;
}

std::string replaced(std::string text, char what, std::string_view with) {
  std::string out;
  for (const char c : text) c == what ? out.append(with) : out.append(1, c);
  return out;
}

// --- bash ----------------------------------------------------------------------------------------

// What sets `words` or `kind` for a value; empty when anything may be typed.
std::string bash_values(const Values& values) {
  if (!values.words.empty()) return fmt::format("words=\"{}\"", fmt::join(values.words, " "));
  if (values.files) return "kind=files";
  return values.locks ? "kind=locks" : "";
}

// `case` branches: "run --ttl") …
std::string bash_option_values(const Command& command) {
  std::string out;
  for (const Option& option : command.options) {
    if (!option.takes_value) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : spellings(option))
      patterns.push_back(fmt::format("\"{} {}\"", command.name, name));
    const std::string values = bash_values(option.values);
    out += fmt::format("    {}) takes=1{} ;;\n", fmt::join(patterns, "|"),
                       values.empty() ? "" : "; " + values);
  }
  return out;
}

std::string bash_arguments(const Command& command) {
  std::string out;
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    if (const std::string values = bash_values(command.arguments[i]); !values.empty())
      out += fmt::format("    \"{} {}\") {} ;;\n", command.name, i, values);
  }
  return out;
}

std::string bash_words(const Command& command) {
  std::vector<std::string> list = command.verbs;
  for (const Option& option : command.options) {
    for (std::string& name : spellings(option)) list.push_back(std::move(name));
  }
  return fmt::format("    \"{}\") options=\"{}\" ;;\n", command.name, fmt::join(list, " "));
}

std::string bash(const std::vector<Command>& commands) {
  std::string verbs, values, arguments, words, takers;
  for (const Command& command : commands) {
    for (const std::string& verb : command.verbs)
      verbs += fmt::format("{}\"{} {}\"", verbs.empty() ? "" : "|", command.name, verb);
    values += bash_option_values(command);
    arguments += bash_arguments(command);
    words += bash_words(command);
    if (command.takes_command)
      takers += fmt::format("{}{}", takers.empty() ? "" : "|", command.name);
  }
  return fmt::format(
      R"sh(# bash completion for pawl. Load it with: source <(pawl completion bash)
_pawl_value() {{  # of option $2 of command $1: sets takes, and words or kind
  takes= words= kind=
  case "$1 $2" in
{}  esac
}}
_pawl() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} command= position=0 i word takes words kind options
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ $word == -- ]]; then  # Behind it: any command of the shell.
      case $command in {}) ;; *) return ;; esac
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((COMP_CWORD == i + 1)); then
        COMPREPLY=($(compgen -c -- "$cur"))
      else
        COMPREPLY=($(compgen -f -- "$cur"))
      fi
      return
    fi
    case "$command $word" in
    {}) command="${{command:+$command }}$word"; continue ;;
    esac
    if [[ $word == -* ]]; then
      _pawl_value "$command" "$word"
      if [[ $takes ]]; then ((++i)); fi
    else
      ((++position))
    fi
  done
  words= kind= options=
  if ((i > COMP_CWORD)); then  # The value of the option before it.
    _pawl_value "$command" "${{COMP_WORDS[COMP_CWORD - 1]}}"
  else
    case "$command $position" in
{}    esac
    case $command in
{}    esac
  fi
  case $kind in
  files) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null ;;
  locks)
    [[ $cur == -* ]] ||
      words=$(timeout 1 pawl ls "$cur" 2>/dev/null | awk 'NR > 1 {{ print $1 }}') ;;
  esac
  COMPREPLY+=($(compgen -W "$words $options" -- "$cur"))
}}
complete -F _pawl pawl
)sh",
      values, takers, verbs, arguments, words);
}

// --- zsh -----------------------------------------------------------------------------------------

// Inside '…' and inside the brackets of _arguments.
std::string zsh_help(const std::string& text) {
  return replaced(replaced(replaced(replaced(text, '\'', "'\\''"), '[', "\\["), ']', "\\]"), ':',
                  "\\:");
}

std::string zsh_values(const Values& values) {
  if (!values.words.empty()) return fmt::format("({})", fmt::join(values.words, " "));
  if (values.files) return "_files";
  return values.locks ? "_pawl_locks" : "";
}

std::string zsh_arguments(const Command& command) {
  std::string out;
  for (const Option& option : command.options) {
    const std::string value = option.takes_value ? ":value:" + zsh_values(option.values) : "";
    for (const std::string& name : spellings(option))
      out += fmt::format(" '{}[{}]{}'", name, zsh_help(option.help), value);
  }
  for (std::size_t i = 0; i < command.arguments.size(); ++i)
    out += fmt::format(" '{}:argument:{}'", i + 1, zsh_values(command.arguments[i]));
  return out;
}

std::string zsh(const std::vector<Command>& commands) {
  std::string cases;
  for (const Command& command : commands) {
    if (command.verbs.empty()) {
      cases += fmt::format("    '{}') _arguments -S{} ;;\n", command.name, zsh_arguments(command));
      continue;
    }
    std::string list;
    for (const Command& verb : commands) {
      const std::string prefix = command.name.empty() ? "" : command.name + " ";
      const std::string last = verb.name.substr(std::min(prefix.size(), verb.name.size()));
      if (verb.name.empty() || !verb.name.starts_with(prefix) || last.empty() ||
          last.find(' ') != std::string::npos || verb.name == command.name)
        continue;
      list += fmt::format(" '{}:{}'", last, zsh_help(verb.help));
    }
    cases += fmt::format(
        "    '{}') verbs=({}); _describe verb verbs; [[ $PREFIX == -* ]] && _arguments{} ;;\n",
        command.name, list, zsh_arguments(command));
  }
  std::string verbs, takers;
  for (const Command& command : commands) {
    for (const std::string& verb : command.verbs)
      verbs += fmt::format("{}'{} {}'", verbs.empty() ? "" : "|", command.name, verb);
    if (command.takes_command) takers += (takers.empty() ? "" : "|") + command.name;
  }
  return fmt::format(
      R"sh(#compdef pawl
# zsh completion for pawl. Load it with: source <(pawl completion zsh), or keep it as _pawl in
# $fpath.
_pawl_locks() {{
  local -a locks
  locks=(${{(f)"$(timeout 1 pawl ls "$PREFIX" 2>/dev/null | awk 'NR > 1 {{ print $1 }}')"}})
  compadd -a locks
}}
_pawl() {{
  local -a verbs
  local command=
  while (( CURRENT > 2 )); do
    case "$command $words[2]" in
    {}) command="${{command:+$command }}$words[2]"; shift words; (( CURRENT-- )) ;;
    *) break ;;
    esac
  done
  local dashes=${{words[(i)--]}}
  if (( dashes < CURRENT )); then  # Behind them: any command of the shell.
    case $command in {}) shift $dashes words; (( CURRENT -= dashes )); _normal ;; esac
    return
  fi
  case $command in
{}  esac
}}
if [ "$funcstack[1]" = _pawl ]; then _pawl "$@"; else compdef _pawl pawl; fi
)sh",
      verbs, takers, cases);
}

// --- fish ----------------------------------------------------------------------------------------

std::string fish_help(const std::string& text) {
  return replaced(replaced(text, '\\', "\\\\"), '\'', "\\'");
}

std::string fish_values(const Values& values) {
  if (!values.words.empty()) return fmt::format(" -f -a '{}'", fmt::join(values.words, " "));
  if (values.files) return " -F";
  return values.locks ? " -f -a '(__pawl_locks)'" : "";
}

// One condition of `complete -n`: this command was named, and no `--` yet.
std::string fish_when(const Command& command) {
  std::string seen;
  for (const std::string& word : CLI::detail::split(command.name, ' '))
    seen += fmt::format("__fish_seen_subcommand_from {}; and ", word);
  return fmt::format("complete -c pawl -n '{}not __pawl_behind_dashes'", seen);
}

std::string fish(const std::vector<Command>& commands) {
  std::string out =
      "# fish completion for pawl. Load it with: pawl completion fish | source\n"
      "function __pawl_locks\n"
      "  timeout 1 pawl ls (commandline -ct) 2>/dev/null | awk 'NR > 1 { print $1 }'\n"
      "end\n"
      "function __pawl_behind_dashes\n"
      "  contains -- -- (commandline -opc)\n"
      "end\n"
      "complete -c pawl -f\n"
      "complete -c pawl -n __pawl_behind_dashes -F -a '(__fish_complete_command)'\n";
  for (const Command& command : commands) {
    if (command.name.empty()) continue;
    const auto space = command.name.rfind(' ');
    if (space == std::string::npos) {
      out += fmt::format("complete -c pawl -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                         fish_help(command.help));
    } else {
      const std::string group = command.name.substr(0, space);
      const auto owner = std::find_if(commands.begin(), commands.end(),
                                      [&](const Command& each) { return each.name == group; });
      out += fmt::format(
          "complete -c pawl -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -a {} -d '{}'\n",
          group, fmt::join(owner->verbs, " "), command.name.substr(space + 1),
          fish_help(command.help));
    }
    const std::string when = fish_when(command);
    for (const Values& values : command.arguments) {
      if (const std::string text = fish_values(values); !text.empty()) out += when + text + "\n";
    }
    for (const Option& option : command.options) {
      out += when;
      for (const auto& name : option.longs) out += " -l " + name;
      for (const auto& name : option.shorts) out += " -s " + name;
      out +=
          fmt::format("{} -d '{}'\n", option.takes_value ? " -r" + fish_values(option.values) : "",
                      fish_help(option.help));
    }
  }
  return out;
}

int completion(Console& console, const CommandLine& line, const std::string& shell) {
  const auto commands = describe_all(line);
  const std::string script = shell == "bash"  ? bash(commands)
                             : shell == "zsh" ? zsh(commands)
                                              : fish(commands);
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
  verb.run([shell, &line](Console& console) { return completion(console, line, *shell); });
}

}  // namespace pawl::cli
