// pawl run: run a command while holding locks, and never longer.
#include <memory>

#include "cli/command_line.h"
#include "cli/run_request.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

int run(Console& console, const RunOptions& options) {
  if (options.command.empty()) {
    return console.fail({Code::kInvalid, "no command. Write it after `--`: pawl run LOCK -- CMD…"});
  }
  auto request = to_request(console, options);
  if (!request) return console.fail(request.error());
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  return Runner(console, std::move(*request), std::move(*endpoints)).run();
}

}  // namespace

void add_run(CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
  Verb verb =
      line.verb("run", "run a command while holding a lock, and never longer", Talks::kToPawld);
  options->common.declare(verb);
  verb.text(
      "--on-lost", "stop|kill|ignore", options->on_lost,
      "when the lease cannot be confirmed: TERM, then KILL (stop, the default), KILL, or nothing");
  verb.duration("--kill-after", options->kill_after,
                "send TERM this long before the lease ends (default TTL/6, at most TTL/3); KILL "
                "follows max(100ms, "
                "TTL/20) before its end");
  verb.number("--report-fd", options->report_fd,
              "one JSON line per event to this descriptor, for programs");
  verb.texts(
      "--guard", "KIND:RESOURCE", options->guards,
      "advance this guard before the command starts, e.g. postgres:orders: from then on former "
      "holders cannot "
      "write to it");
  verb.texts("--guard-dsn", "DSN", options->guard_dsns,
             "where the guards are (PAWL_GUARD_DSN); see `pawl guard advance`. For several guards: "
             "KIND=DSN for each kind, or one DSN for each --guard, in their order");
  verb.duration("--guard-wait", options->guard_wait,
                "how long to wait for older transactions that are still open (default 5s)");
  verb.flag("--guard-evict", options->guard_evict,
            "end them after that wait (without it: exit 123)");
  verb.rest(options->command);
  verb.examples(
      "  pawl run reports/nightly -- ./report.sh             wait for it, run, give it back\n"
      "  pawl run reports/nightly -n -E 0 -- ./report.sh     exit 0 if another holder has the "
      "lock\n"
      "  pawl run a --and b -w 30s --max-hold 10m -- make    both or neither; never longer than "
      "ten minutes\n"
      "\n"
      "The command gets PAWL_TOKEN (send it with every write), PAWL_LOCK, PAWL_LEASE, PAWL_OWNER, "
      "PAWL_ADDR,\n"
      "PAWL_TTL_MS, PAWL_DEADLINE_BOOTTIME_NS, PAWL_FLOOR, PAWL_SLOT (with --limit) and "
      "PAWL_HELD=1.\n"
      "It has a process group of its own; signals sent to pawl reach all of it. When it ends, or "
      "the lease "
      "does,\n"
      "everything in the group is stopped before the lock can pass on.\n"
      "\n"
      "Exit codes: the command's own, 128+N when signal N ended it (or the wait); 64 usage, 69 "
      "pawld "
      "unreachable,\n"
      "75 not acquired (-E), 77 not permitted, 78 configuration; 122 lease lost, 124 --max-hold "
      "reached, 125 "
      "pawl "
      "failed,\n"
      "126 not executable, 127 not found. With --guard, and the command not started: 121 the guard "
      "has seen "
      "a "
      "newer\n"
      "token, 123 an older transaction stayed open for --guard-wait. -E changes 75 only: nobody "
      "ran the "
      "command "
      "in\n"
      "the other cases.\n"
      "\n"
      "What it cannot do: reach a process that left the group (setsid); stop the rest of the group "
      "when pawl "
      "itself\n"
      "is killed with KILL (the command itself is killed then); keep a machine that was frozen "
      "past the "
      "deadline from\n"
      "running the command for a moment before pawl kills it. Only a guarded resource, which "
      "checks the "
      "token, can.");
  verb.run([options](Console& console) { return run(console, *options); });
}

}  // namespace pawl::cli
