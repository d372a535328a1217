// pawl demo: in a minute, on this machine, what a lock cannot do and a guard can.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/demo_view.h"
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

struct Next {
  std::string command, what;
};

// What else could be shown here. Nothing is connected to: that a server seems to be there is all
// that is looked at.
std::vector<Next> offers() {
  std::vector<Next> list;
  for (const guard::Kind* kind : guard::all_kinds()) {
    if (kind->seems_local == nullptr || !kind->seems_local()) continue;
    list.push_back(
        {fmt::format("pawl guard install {} --dsn {}", kind->name, kind->where_example),
         fmt::format("install the guard in {}, which seems to be here; then", kind->title)});
    list.push_back({fmt::format("pawl demo --guard {} --dsn {}", kind->name, kind->where_example),
                    "the same there"});
  }
  return list;
}

std::string where_next() {
  std::vector<Next> list = offers();
  list.insert(
      list.end(),
      {{"pawl drill pause --guard sqlite --file shop.db",
        "the same and worse, against a database of your own: docs/how-to/drill.md"},
       {"pawl guard install sqlite --file shop.db", "install the guard in a file of yours; then"},
       {"pawl guard protect sqlite orders --file shop.db",
        "put a table under guard: docs/how-to/guard-sqlite.md"},
       {"pawl run LOCK -- COMMAND", "run a command under a lock: docs/reference/pawl-run.md"}});
  std::string out;
  for (const Next& next : list) out += fmt::format("  {}\n      {}\n", next.command, next.what);
  return out;
}

int conclude(Console& console, const drill::DemoEnd& end) {
  if (console.json()) {
    Json json;
    json.object().key("event").string("end").key("lost_without_guard").boolean(end.lost_without);
    json.key("refused_with_guard").boolean(end.refused_with).end();
    if (!console.data(json)) return kExitOutput;
  } else if (end.as_told()) {
    console.data(fmt::format(
        "\n{}\n{}\n\nWhere to look next:\n{}",
        console.paint(Paint::kStrong,
                      "The lock could not save the row: a worker that is late does not know it."),
        console.paint(Paint::kStrong, "The token did, because the database itself compares it."),
        where_next()));
  }
  if (end.as_told()) return kExitOk;
  console.note("pawl: the demo did not end as it should have: please report this");
  return kExitStale;
}

int demo(Console& console, const DemoArguments& options) {
  const auto kind = guard::need_kind(options.target.kind);
  if (!kind) return console.fail(kind.error());
  if ((*kind)->create == nullptr) {
    if (const auto there = options.target.open(); !there) return console.fail(there.error());
  } else if (!options.target.dsn.empty()) {
    return console.fail({Code::kInvalid, fmt::format("--dsn: the demo makes a {} file of its own",
                                                     (*kind)->title)});
  }
  StopSignals signals;
  drill::DemoSetting setting;
  setting.kind = options.target.kind;
  setting.where = options.target.where();
  setting.stop = signals.fd();
  if (options.fast) {
    setting.ttl = 1500ms;
    setting.per_letter = 0ms;
  }
  auto view = make_demo_view(console);
  const auto end = drill::play_demo(setting, *view);
  view.reset();
  if (!end) return console.fail(end.error());
  if (!end->interrupted) return conclude(console, *end);
  console.note("pawl: stopped; nothing is left behind");
  return kExitSignalled + signals.take();
}

}  // namespace

void add_demo(CommandLine& line) {
  auto options = std::make_shared<DemoArguments>();
  options->target.kind = guard::serverless_kind().name;
  std::vector<std::string> kinds;
  for (const guard::Kind* kind : guard::all_kinds()) kinds.emplace_back(kind->name);
  Verb verb = line.verb("demo", "show in a minute what a lock cannot do, and a guard can",
                        Talks::kToNobody);
  verb.optional_choice(
      "--guard", options->target.kind, kinds,
      "where the row is: a SQLite file of the demo's own (by default), or a scratch table in a "
      "database of yours");
  verb.text(
      "--dsn", "DSN", options->target.dsn,
      "postgres, mariadb: which database (PAWL_GUARD_DSN); the guard must be installed there");
  verb.flag("--fast", options->fast, "short leases, and no pauses for reading");
  verb.examples(
      "  pawl demo                                                needs nothing, leaves nothing "
      "behind\n"
      "  pawl demo --guard postgres --dsn postgresql:///shop      in a scratch table, which is "
      "removed "
      "afterwards\n"
      "  pawl demo --fast --json | jq -r .text");
  verb.run([options](Console& console) { return demo(console, *options); });
}

}  // namespace pawl::cli
