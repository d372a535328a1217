// pawl drill: what happens when a worker is frozen, cut off or killed, on the user's own database.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/random.h"
#include "drill/run.h"
#include "pawl/command_line.h"
#include "pawl/confirm.h"
#include "pawl/drill_report.h"
#include "pawl/duration.h"
#include "pawl/exit_codes.h"
#include "pawl/guard_target.h"
#include "pawl/stop_signals.h"
#include "pawl/utf8.h"
#include "pawl/verbs.h"

namespace pawl::cli {
namespace {

using drill::Drill;
using drill::Whose;

constexpr const char* kAll = "all";
constexpr std::uint64_t kRoundsMax = 1'000;
constexpr Millis kTtlMin{500};  // Less than that a busy machine takes away by itself.

struct Options {
  std::string drill;
  std::string guard;  // KIND or KIND:RESOURCE
  GuardTarget target;
  std::string lock;
  std::string mode = "enforce";  // of a scratch resource
  Millis ttl{2'000};
  Millis wait{10'000};
  std::uint64_t rounds = 1;
};

Error usage(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Drill& each : drill::all_drills()) list.emplace_back(each.name);
  list.emplace_back(kAll);
  return list;
}

std::vector<const Drill*> chosen(const Options& options) {
  std::vector<const Drill*> list;
  for (const Drill& each : drill::all_drills()) {
    if (options.drill == kAll || options.drill == each.name) list.push_back(&each);
  }
  return list;
}

// A name that nobody else uses: the drill is alone with it.
std::string scratch_lock() {
  SystemRandom random;
  return fmt::format("pawl-drill/{:08x}", random.next() & 0xffff'ffff);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<void> check(Options& options) {
  const std::size_t colon = options.guard.find(':');
  options.target.kind = options.guard.substr(0, colon);
  const std::string& kind = options.target.kind;
  if (kind != "postgres" && kind != "sqlite" && kind != "mariadb")
    return usage(
        fmt::format("--guard: postgres, sqlite or mariadb; \"{}\" is not", printable(options.guard)));
  if (colon != std::string::npos)
    return usage("--guard: a scratch resource only, so far: name the kind of database alone");
  if (options.ttl < kTtlMin)
    return usage(
        fmt::format("--ttl: at least {}, or a busy machine loses leases by itself", to_text(kTtlMin)));
  if (options.rounds < 1 || options.rounds > kRoundsMax)
    return usage(fmt::format("--rounds: 1 to {}", kRoundsMax));
  if (options.lock.empty()) options.lock = scratch_lock();
  return {};
}

drill::Order to_order(Console& console, const Options& options, const StopSignals& signals) {
  drill::Order order;
  order.rounds = options.rounds;
  drill::Setting& setting = order.setting;
  setting.pawld = console.targets();
  setting.auth = console.auth();
  setting.tls = {environment("PAWL_TLS_CA"), environment("PAWL_TLS_CERT"), environment("PAWL_TLS_KEY"), ""};
  setting.lock = options.lock;
  setting.ttl = options.ttl;
  setting.patience = options.wait;
  setting.target.kind = options.target.kind;
  setting.target.where = options.target.where();
  setting.mode = options.mode;
  setting.stop = signals.fd();
  if (console.json()) return order;
  setting.tell = [&console](const drill::Line& line) { console.data(to_line(console, line)); };
  setting.wait = [&console](std::string_view what, drill::Moment waited) {
    console.progress(
        fmt::format("waiting for {} … {:.1f} s", what, std::chrono::duration<double>(waited).count()));
  };
  return order;
}

// Whether there is a pawld to drill with, and a guard.
Result<void> look(Console& console, const Options& options, const std::vector<const Drill*>& drills) {
  const bool users = std::any_of(drills.begin(), drills.end(),
                                 [](const Drill* each) { return each->pawld == Whose::kUsers; });
  if (users) {
    if (const auto there = console.ask({"INSPECT", options.lock}); !there) return there.error();
  }
  if (const auto opened = options.target.open(); !opened) return opened.error();
  return {};
}

int drill_all(Console& console, const Options& options, const std::vector<const Drill*>& drills) {
  StopSignals signals;
  Json json;
  json.object().key("drills").array();
  bool passed = true;
  int impossible = kExitOk;
  for (const Drill* each : drills) {
    if (!console.json())
      console.data(fmt::format("{}: {}\n", console.paint(Paint::kStrong, each->name), each->about));
    const drill::Ended ended = drill::run(*each, to_order(console, options, signals));
    console.end_progress();
    if (ended.interrupted) {
      console.note("pawl: stopped; nothing is left behind");
      return kExitSignalled + signals.take();
    }
    if (ended.trouble) {
      const Error why{ended.trouble->code, fmt::format("the drill {} could not be carried out: {}",
                                                       each->name, ended.trouble->detail)};
      if (drills.size() == 1) return console.fail(why);
      console.note("pawl: " + printable(why.detail));
      impossible = exit_code(why.code);
      continue;
    }
    passed = passed && ended.record->verdict.passed;
    if (!console.json() && !console.data(to_verdict(console, *ended.record))) return kExitOutput;
    write(json, *ended.record);
  }
  json.end().key("passed").boolean(passed && impossible == kExitOk).end();
  if (console.json() && !console.data(json)) return kExitOutput;
  return passed ? impossible : kExitNothingDone;
}

int drill_verb(Console& console, Options& options) {
  if (const auto fine = check(options); !fine) return console.fail(fine.error());
  const std::vector<const Drill*> drills = chosen(options);
  if (const auto there = look(console, options, drills); !there) return console.fail(there.error());
  return drill_all(console, options, drills);
}

}  // namespace

void add_drill(CommandLine& line) {
  auto options = std::make_shared<Options>();
  Verb verb = line.verb(
      "drill",
      "freeze, cut off and kill workers of its own, and see whether your guard refuses what they write",
      Talks::kToPawld);
  verb.choice("DRILL", options->drill, names(), "which; the last four start a pawld of their own");
  verb.text("--guard", "KIND", options->guard,
            "postgres, sqlite or mariadb: where a scratch resource is made, written to and removed");
  verb.must_have("--guard");
  verb.text("--guard-dsn,--dsn", "DSN", options->target.dsn,
            "where the database is: a URI or key=value pairs (PAWL_GUARD_DSN; else PGHOST, …, or ~/.my.cnf)");
  verb.text("--file", "PATH", options->target.file, "sqlite: where, the same as --guard-dsn");
  verb.not_both("--file", "--guard-dsn");
  verb.text("--mode", "MODE", options->mode,
            "of the scratch resource: enforce (default), shadow, observe, or none: no guard at all");
  verb.text("--lock", "LOCK", options->lock,
            "which lock the workers use (default: one that nobody else does)");
  verb.duration("-t,--ttl", options->ttl, "of the leases (default 2s)");
  verb.duration("-w,--wait", options->wait, "how long to wait for the lock at most (default 10s)");
  verb.number("--rounds", options->rounds, "how many times over (default 1)");
  verb.examples(
      "  pawl drill pause --guard postgres --guard-dsn 'dbname=shop'\n"
      "  pawl drill all --guard sqlite --file shop.db --json\n"
      "  pawl drill partition --guard postgres --mode shadow     what a guard in shadow lets through\n"
      "  pawl drill pause --guard mariadb --mode none            what happens without one\n"
      "\n"
      "Workers are processes of its own. They take a lock, write to the resource, and lose the lock in one "
      "of eight\n"
      "ways, without knowing; then they write with the old token. A guard refuses that.\n"
      "Ends with 0 when stale writes were sent and every one was refused, with 1 when one got through (or "
      "the guard\n"
      "refused the holder), with 69, 75 or 77 when the drill could not be carried out.");
  verb.run([options](Console& console) { return drill_verb(console, *options); });
}

}  // namespace pawl::cli
