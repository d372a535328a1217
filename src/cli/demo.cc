// pawl demo: shows in a minute, on this machine, why a lock needs a guard.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/demo_view.h"
#include "cli/drill_hints.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "drill/demo.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;

struct DemoArguments {
  GuardTarget target;
  bool fast = false;
};

int print_result(Console& console, std::string_view kind, const drill::DemoResult& result) {
  if (console.json()) {
    Json json;
    json.object()
        .key("event")
        .string("end")
        .key("lost_without_guard")
        .boolean(result.lost_without_guard);
    json.key("refused_with_guard").boolean(result.refused_with_guard);
    json.key("refused_every_way").boolean(result.refused_every_way).end();
    if (!console.data(json)) return kExitOutput;
  } else if (result.as_expected()) {
    console.data(fmt::format(
        "\n{}\n{}\n\n{}",
        console.paint(
            Paint::kStrong,
            "The lock could not protect the row: a late worker does not know that it is late."),
        console.paint(Paint::kStrong, "The token could, because the database itself compares it."),
        next_steps_hint()));
  }
  if (result.as_expected()) return kExitOk;
  if (result.refused_with_guard && !result.refused_every_way) {
    console.note(fmt::format(
        "pawl: the table did not refuse every write, so the guard does not protect it: pawl guard "
        "check {}",
        kind));
    return kExitStale;
  }
  console.note("pawl: the demo did not end as expected; please report this");
  return kExitStale;
}

int demo(Console& console, const DemoArguments& options) {
  const auto kind = guard::need_kind(options.target.kind);
  if (!kind) return console.fail(kind.error());
  if ((*kind)->create == nullptr) {
    if (const auto there = options.target.open(); !there) return console.fail(there.error());
  } else if (!options.target.dsn.empty()) {
    return console.fail(
        {Code::kInvalid,
         fmt::format("--dsn: with {} the demo makes its own file; leave it out", (*kind)->name)});
  }
  StopSignals signals;
  drill::DemoConfig config;
  config.drill.ttl = 6s;
  config.drill.target.kind = options.target.kind;
  config.drill.target.where = options.target.where();
  config.drill.stop_fd = signals.fd();
  if (options.fast) {
    config.drill.ttl = 1500ms;
    config.per_letter = 0ms;
  }
  auto view = make_demo_view(console);
  const auto result = drill::run_demo(config, *view);
  view.reset();
  if (!result) return console.fail(result.error());
  if (!result->interrupted) return print_result(console, (*kind)->name, *result);
  console.note("pawl: stopped; nothing is left behind");
  return kExitSignalled + signals.take();
}

}  // namespace

void add_demo(CommandLine& line) {
  auto options = std::make_shared<DemoArguments>();
  options->target.kind = guard::serverless_kind().name;
  std::vector<std::string> kinds;
  for (const guard::Kind* kind : guard::all_kinds()) kinds.emplace_back(kind->name);
  Verb verb =
      line.verb("demo", "show in a minute what a lock cannot do and a guard can", Talks::kToNobody);
  verb.optional_choice(
      "--guard", options->target.kind, kinds,
      "where the row is: a throw-away SQLite file (default), or a scratch table in your database");
  verb.text("--dsn", "DSN", options->target.dsn,
            "where the database of --guard is (PAWL_GUARD_DSN); the guard must be installed "
            "there");
  verb.flag("--fast", options->fast, "short leases, no pauses for reading");
  verb.examples(
      "  pawl demo                                                needs nothing, leaves nothing "
      "behind\n"
      "  pawl demo --guard postgres --dsn postgresql:///shop      in a scratch table, which is "
      "removed afterwards\n"
      "  pawl demo --fast --json | jq -r .text");
  verb.run([options](Console& console) { return demo(console, *options); });
}

}  // namespace pawl::cli
