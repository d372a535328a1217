// pawl run: run a command while holding locks, and never longer.
#include <memory>
#include <optional>

#include "cli/command_line.h"
#include "cli/run_request.h"
#include "cli/runner.h"
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
  std::optional<Runner> runner(std::in_place, console, std::move(*request), std::move(*endpoints));
  const int code = runner->run();
  const int signal = runner->ended_by();
  runner.reset();  // Everything is cleaned up, the signals are as they were.
  // So that a shell ends the script that this command is in.
  if (is_passed_to_the_shell(signal)) end_by_signal(signal);
  return code;
}

}  // namespace

void add_run(CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
  Verb verb =
      line.verb("run", "run a command while holding a lock, and never longer", Talks::kToPawld);
  options->common.declare(verb);
  verb.text(
      "--on-lost", "stop|kill|ignore", options->on_lost,
      "when the lease cannot be confirmed: TERM, then KILL (stop, the default), KILL only, or "
      "nothing");
  verb.text("--on-ask", "report|ignore|SIGNAL", options->on_ask,
            "when somebody asks for the lock (`pawl ask`): print a line (report, the default), "
            "nothing, or print it and send the command this signal, such as TERM or USR1");
  verb.duration("--kill-after", options->kill_after,
                "send TERM this long before the lease ends (default TTL/6, at most TTL/3); KILL "
                "follows max(100ms, TTL/20) before its end");
  verb.duration("--max-stopped", options->max_stopped,
                "end a command that a signal such as SIGSTOP has stopped for this long (exit 124); "
                "default: keep the lock for it");
  verb.number("--report-fd", options->report_fd,
              "write one JSON line per event to this descriptor, for programs");
  verb.texts("--guard", "KIND:RESOURCE", options->guards,
             "advance this guard before the command starts, e.g. postgres:orders: from then on "
             "former holders cannot write to it");
  verb.texts("--guard-dsn", "DSN", options->guard_dsns,
             "where the guards are (PAWL_GUARD_DSN); see `pawl guard advance`. For several guards: "
             "KIND=DSN for each kind, or one DSN for each --guard, in their order");
  verb.duration("--guard-wait", options->guard_wait,
                "how long to wait for older transactions that are still open (default 5s)");
  verb.flag("--guard-evict", options->guard_evict,
            "end them after that wait (without it: exit 123)");
  verb.flag("-v,--verbose", options->verbose,
            "print at the start how everything that the command starts is stopped");
  verb.rest(options->command);
  verb.examples(
      "  pawl run reports/nightly -- ./report.sh             wait for the lock, run, release it\n"
      "  pawl run reports/nightly -n -E 0 -- ./report.sh     exit 0 if the lock is held\n"
      "  pawl run a --and b -w 30s --max-hold 10m -- make    both or neither, for 10 min at most\n"
      "\n"
      "The command gets PAWL_TOKEN (send it with every write), PAWL_LOCK, PAWL_LEASE, PAWL_OWNER,\n"
      "PAWL_ADDR, PAWL_TTL_MS, PAWL_DEADLINE_BOOTTIME_NS, PAWL_FLOOR, PAWL_SLOT (with --limit) "
      "and\n"
      "PAWL_HELD=1. It shares the process group of pawl; signals sent to pawl are passed on. When "
      "the\n"
      "command or the lease ends, everything it started is stopped before the lock can pass on.\n"
      "\n"
      "Exit codes: the command's own, or 128+N when signal N ended it or the wait (after INT, "
      "QUIT,\n"
      "TERM and HUP pawl ends by the same signal, so that a shell ends its script); 64 usage, 69\n"
      "pawld unreachable, 75 not acquired (-E), 77 not permitted, 78 configuration; 120 a process "
      "of\n"
      "the command could not be stopped, 122 lease lost, 124 --max-hold or --max-stopped reached, "
      "125 pawl failed, "
      "126\n"
      "not executable, 127 not found. With --guard, if the command was not started: 121 the guard "
      "has\n"
      "seen a newer token, 123 an older transaction stayed open for --guard-wait. -E changes only "
      "75:\n"
      "in the other cases nobody ran the command.\n"
      "\n"
      "Limits: a process that runs as another user (sudo) can be stopped only where pawl may make "
      "a\n"
      "cgroup, which -v shows; one that another program starts on request (systemd-run, docker) is "
      "not\n"
      "seen. On a machine that was frozen past the deadline the command may run for a moment "
      "before\n"
      "it is killed. Only a guarded resource, which checks the token, protects against these.");
  verb.run([options](Console& console) { return run(console, *options); });
}

}  // namespace pawl::cli
