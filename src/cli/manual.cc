// pawl manual DIR (not listed in --help): writes pawl-VERB.1 for every verb, generated from its
// declaration. The build runs it and installs the pages.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

// Text between macros: a line that begins with a dot or a quote would be one, and a backslash an
// escape.
std::string escaped(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

// mdoc wants each sentence on a line of its own.
std::string by_sentence(std::string text) {
  for (auto end = text.find(". "); end != std::string::npos; end = text.find(". ", end))
    text[end + 1] = '\n';
  return text;
}

// An argument of a macro. Short words could be taken for macros themselves.
std::string argument(const std::string& text) {
  return text.empty() ? "\\&" : "\\&" + escaped(text);
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

// What `pawl VERB --help` calls it: "pawl guard install".
std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string item(const CLI::Option& option) {
  if (option.get_positional()) return fmt::format(".It Ar {}\n", argument(option.get_name()));
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("Fl " + name);
  for (const auto& name : option.get_lnames()) names.push_back("Fl -" + name);
  std::string head = fmt::format(".It {}", fmt::join(names, " , "));
  if (option.get_items_expected_max() > 0) head += " Ar " + argument(option.get_type_name());
  return head + "\n";
}

std::string items(const CLI::App& app) {
  std::string list;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not listed
    list += item(*option) + escaped(by_sentence(option->get_description())) + "\n";
  }
  return list.empty() ? "" : ".Bl -tag -width Ds\n" + list + ".El\n";
}

std::string synopsis(const CLI::App& app) {
  std::string out = ".Nm " + full_name(app) + "\n.Op Ar options\n";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    out += option->get_required() ? ".Ar " : ".Op Ar ";
    out += argument(option->get_name()) + "\n";
  }
  return out;
}

std::string literal(const std::string& text) {
  return text.empty() ? "" : ".Bd -literal\n" + escaped(text) + "\n.Ed\n";
}

std::string page(const CLI::App& verb, const std::string& date) {
  const auto nested = verbs_of(verb);
  std::string out =
      fmt::format(".Dd {}\n.Dt PAWL-{} 1\n.Os Pawl\n.Sh NAME\n.Nm pawl-{}\n.Nd {}\n", date,
                  upper(verb.get_name()), verb.get_name(), escaped(verb.get_description()));
  out += ".Sh SYNOPSIS\n";
  // A group has --help only; `pawl gate` is a verb with verbs.
  if (nested.empty() || verb.get_options().size() > 1) out += synopsis(verb);
  for (const CLI::App* inner : nested) out += synopsis(*inner);
  out += ".Sh DESCRIPTION\n" + items(verb);
  for (const CLI::App* inner : nested) {
    out += fmt::format(".Ss {}\n{}:\n", full_name(*inner), escaped(inner->get_description()));
    out += items(*inner) + literal(inner->get_footer());
  }
  if (!verb.get_footer().empty()) out += ".Sh NOTES\n" + literal(verb.get_footer());
  return out + ".Sh SEE ALSO\n.Xr pawl 1 ,\n.Xr pawld 8\n";
}

struct ManualArguments {
  std::string directory, date = "November 16, 2026";
  std::vector<std::string> except;
};

int manual(Console& console, const CLI::App& app, const ManualArguments& options) {
  for (const CLI::App* verb : verbs_of(app)) {
    const std::string name = verb->get_name();
    if (std::find(options.except.begin(), options.except.end(), name) != options.except.end())
      continue;
    const auto path = std::filesystem::path(options.directory) / ("pawl-" + name + ".1");
    std::ofstream file(path, std::ios::trunc);
    file << page(*verb, options.date);
    if (!file.flush()) {
      return console.fail(Error{Code::kInvalid, fmt::format("cannot write {}", path.string())},
                          kExitOutput);
    }
  }
  return kExitOk;
}

}  // namespace

void add_manual(CommandLine& line) {
  auto options = std::make_shared<ManualArguments>();
  Verb verb = line.verb("manual", "write the manual pages of the verbs", Talks::kToNobody);
  verb.required("DIR", options->directory, "the directory for the pages");
  verb.text("--date", "TEXT", options->date, "the date in the pages");
  verb.texts("--except", "VERB", options->except, "a verb with a hand-written page; repeatable");
  verb.hide();
  verb.run([options, &line](Console& console) { return manual(console, line.app(), *options); });
}

}  // namespace pawl::cli
