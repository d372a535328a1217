// pawl demo: in a minute, on this machine, what a lock cannot do and a guard can.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
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

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool exists(const char* path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

struct Next {
  std::string command, what;
};

// What else could be shown here. Nothing is asked of them: that they seem to be there is all that
// is looked at.
std::vector<Next> offers() {
  std::vector<Next> list;
  if (is_set("PGHOST") || is_set("PGSERVICE") || exists("/run/postgresql/.s.PGSQL.5432")) {
    list.push_back({"pawl demo --guard postgres --dsn postgresql:///DATABASE",
                    "the same in PostgreSQL, which seems to be on this machine"});
  }
  if (exists("/run/mysqld/mysqld.sock")) {
    list.push_back({"pawl demo --guard mariadb --dsn mariadb:///DATABASE",
                    "the same in MariaDB, which seems to be on this machine"});
  }
  return list;
}

std::string where_next() {
  std::vector<Next> list = offers();
  list.insert(
      list.end(),
      {{"pawl drill pause --guard sqlite --file shop.db",
        "the same and worse, against a database of your own: docs/how-to/drill.md"},
       {"pawl guard protect sqlite orders --file shop.db",
        "put a table of your own under guard: docs/how-to/guard-sqlite.md"},
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
  if (options.target.kind != "sqlite") {
    if (const auto there = options.target.open(); !there) return console.fail(there.error());
  } else if (!options.target.dsn.empty()) {
    return console.fail({Code::kInvalid, "--dsn: the demo makes a SQLite file of its own"});
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
  options->target.kind = "sqlite";
  Verb verb = line.verb("demo", "show in a minute what a lock cannot do, and a guard can",
                        Talks::kToNobody);
  verb.optional_choice(
      "--guard", options->target.kind, {"sqlite", "postgres", "mariadb"},
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
