// pawl guard conformance: does a guard keep the contract? Ours in a database of yours, or one of
// your own.
#include <fmt/format.h>

#include <functional>
#include <memory>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/guard_verbs.h"
#include "cli/reply.h"
#include "conformance/process_subject.h"
#include "conformance/run.h"

namespace pawl::cli {
namespace {

using conformance::CaseEnd;
using conformance::CaseResult;
using conformance::Report;
using conformance::Subject;

struct GuardConformanceArguments {
  GuardTarget target;
  std::string command;  // --exec
  std::string form;     // --form
  bool list = false;
  conformance::RunOptions run;
};

// --- --list --------------------------------------------------------------------------------------

std::string needs_of(const conformance::Case& each) {
  std::string text;
  for (const conformance::Ability ability : each.needs.list())
    text += fmt::format("{}{}", text.empty() ? "" : " ", guard::to_text(ability));
  std::string either;
  for (const conformance::Ability ability : each.one_of.list())
    either += fmt::format("{}{}", either.empty() ? "" : "|", guard::to_text(ability));
  return text + (text.empty() || either.empty() ? "" : " ") + either;
}

int list(Console& console) {
  std::string out;
  if (console.json()) {
    Json json;
    json.object().key("cases").array();
    for (const conformance::Case& each : conformance::all_cases()) {
      json.object().key("case").string(each.name).key("claim").string(each.claim);
      json.key("needs").string(needs_of(each)).end();
    }
    json.end().end();
    out = json.text() + "\n";
  } else {
    Table table({"CASE", "CLAIM", "NEEDS"});
    for (const conformance::Case& each : conformance::all_cases())
      table.row({std::string(each.name), std::string(each.claim), needs_of(each)});
    out = table.text(true);
  }
  return console.data(out) ? kExitOk : kExitOutput;
}

// --- running -------------------------------------------------------------------------------------

std::string to_line(Console& console, const CaseResult& result) {
  const std::string why = printable(result.why);
  switch (result.end) {
    case CaseEnd::kPassed:
      return fmt::format("{}  {}: {}\n", console.paint(Paint::kGood, "ok    "), result.ran.name,
                         result.ran.claim);
    case CaseEnd::kFailed:
      return fmt::format("{}  {}: not true: {}\n        {}\n", console.paint(Paint::kBad, "FAILED"),
                         result.ran.name, result.ran.claim, why);
    case CaseEnd::kNotApplicable:
      return fmt::format("{}  {}: not applicable: {}\n", console.paint(Paint::kDim, "-     "),
                         result.ran.name, why);
  }
  return {};
}

std::string to_summary(Console& console, const Report& report) {
  const std::size_t failed = report.count(CaseEnd::kFailed);
  const std::string verdict = failed == 0
                                  ? console.paint(Paint::kGood, "keeps the contract")
                                  : console.paint(Paint::kBad, "does not keep the contract");
  return fmt::format("{} {}: {} passed, {} failed, {} not applicable (seed {})\n",
                     printable(report.subject), verdict, report.count(CaseEnd::kPassed), failed,
                     report.count(CaseEnd::kNotApplicable), report.seed);
}

void write(Json& json, const Report& report) {
  const auto count = [&](const char* key, CaseEnd end) {
    json.key(key).number(static_cast<std::int64_t>(report.count(end)));
  };
  json.object().key("subject").string(report.subject);
  json.key("seed").number(static_cast<std::int64_t>(report.seed));
  json.key("conforms").boolean(report.count(CaseEnd::kFailed) == 0);
  count("passed", CaseEnd::kPassed);
  count("failed", CaseEnd::kFailed);
  count("not_applicable", CaseEnd::kNotApplicable);
  json.key("cases").array();
  for (const CaseResult& result : report.results) {
    json.object().key("case").string(result.ran.name).key("claim").string(result.ran.claim);
    json.key("end").string(to_text(result.end)).key("why").string(result.why).end();
  }
  json.end().end();
}

using Start = std::function<Result<std::unique_ptr<Subject>>()>;

Result<std::vector<Start>> starts(const GuardConformanceArguments& options) {
  if (!options.command.empty())
    return std::vector<Start>{[&] { return conformance::start_process_subject(options.command); }};
  if (options.target.kind.empty())
    return Error{Code::kInvalid,
                 fmt::format("name what to test: {}; or --exec with a command of your own",
                             guard::kind_names())};
  const auto kind = guard::need_kind(options.target.kind);
  if (!kind) return kind.error();
  std::vector<Start> all;
  for (const std::string_view form : (*kind)->forms) {
    if (!options.form.empty() && options.form != form) continue;
    all.emplace_back([&options, kind = *kind, form] {
      return kind->open_scratch(options.target.where(), form);
    });
  }
  if (all.empty())
    return Error{Code::kInvalid,
                 fmt::format("{} has no form \"{}\"; its forms are: {}", (*kind)->name,
                             printable(options.form), fmt::join((*kind)->forms, ", "))};
  // Whether it is installed, in a contract that we know.
  if (const auto opened = options.target.open(); !opened) return opened.error();
  return all;
}

int run(Console& console, const GuardConformanceArguments& options) {
  if (const std::string unknown = conformance::find_unknown(options.run.cases); !unknown.empty()) {
    return console.fail({Code::kInvalid, fmt::format("there is no case \"{}\"; --list shows them",
                                                     printable(unknown))});
  }
  const auto all = starts(options);
  if (!all) return console.fail(all.error());
  std::vector<Report> reports;
  bool conforms = true;
  bool written = true;
  for (const Start& start : *all) {
    auto subject = start();
    if (!subject) return console.fail(subject.error());
    const auto tell = [&](const CaseResult& result) {
      if (!console.json()) written = console.data(to_line(console, result)) && written;
    };
    reports.push_back(conformance::run(**subject, options.run, tell));
    conforms = conforms && reports.back().count(CaseEnd::kFailed) == 0;
    if (!console.json()) written = console.data(to_summary(console, reports.back())) && written;
  }
  if (console.json()) {
    Json json;
    json.object().key("conforms").boolean(conforms).key("reports").array();
    for (const Report& report : reports) write(json, report);
    json.end().end();
    written = console.data(json);
  }
  if (!written) return kExitOutput;
  return conforms ? kExitOk : kExitNothingDone;
}

}  // namespace

void add_guard_conformance(CommandLine& line) {
  auto options = std::make_shared<GuardConformanceArguments>();
  Verb verb =
      line.verb("guard", "conformance",
                "find out whether a guard keeps the contract: some eighty cases, races included",
                Talks::kToNobody);
  options->target.declare_optional(verb);
  verb.text("--exec", "COMMAND", options->command,
            "test a guard of your own: a command that answers in JSON lines "
            "(docs/reference/conformance.md)");
  verb.not_both("--exec", "KIND");
  verb.text("--form", "FORM", options->form,
            "only this form of guard; in databases admit, keyed, table, row, by (default: all)");
  verb.texts("--case", "NAME", options->run.cases, "only this case; may be repeated");
  verb.flag("--list", options->list, "print the cases and run nothing");
  verb.number("--seed", options->run.seed, "of the races (default 1)");
  verb.number("--rounds", options->run.rounds, "how often each racer tries (default 25)");
  verb.examples(
      "  pawl guard conformance postgres --dsn 'dbname=test'\n"
      "  pawl guard conformance sqlite --file test.db\n"
      "  pawl guard conformance mariadb --dsn 'host=127.0.0.1 user=root' --form table\n"
      "  pawl guard conformance --exec 'python3 my_guard.py' --rounds 1000\n"
      "  pawl guard conformance --list\n"
      "It creates tables and guards of its own, and removes them. Use a test database anyway.\n"
      "Ends with 0 when every case that applies has passed, with 1 when one has failed.");
  verb.run([options](Console& console) {
    return options->list ? list(console) : run(console, *options);
  });
}

}  // namespace pawl::cli
