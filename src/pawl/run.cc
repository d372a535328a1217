// pawl run: run a command while holding locks, and never longer.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "pawl/acquire_options.h"
#include "pawl/command_line.h"
#include "pawl/duration.h"
#include "pawl/exit_codes.h"
#include "pawl/owner.h"
#include "pawl/runner.h"
#include "pawl/utf8.h"
#include "pawl/verbs.h"

namespace pawl::cli {
namespace {

constexpr Millis kTtlMin{1'000};
constexpr Millis kDefault{-1};
constexpr std::uint64_t kNone = ~std::uint64_t{0};

struct Options {
  AcquireOptions common;
  std::string on_lost = "stop";
  Millis kill_after = kDefault;
  std::uint64_t report_fd = kNone;
  std::vector<std::string> guards;
  std::string guard_dsn;
  Millis guard_wait{5'000};
  bool guard_evict = false;
  std::vector<std::string> command;
};

Error usage(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

Result<RunTimes> to_times(const Options& options) {
  const Millis ttl = options.common.ttl;
  if (ttl < kTtlMin) return usage("--ttl: at least 1s for run; there must be time to stop the command in");
  RunTimes times{.ttl = ttl, .kill_after = options.kill_after, .max_hold = options.common.max_hold};
  if (times.kill_after == kDefault) times.kill_after = ttl / 6;
  if (times.kill_after > ttl / 3) {
    return usage(fmt::format("--kill-after: at most a third of the TTL, {} here", to_text(ttl / 3)));
  }
  if (options.on_lost == "stop") return times;
  times.on_lost = options.on_lost == "kill" ? OnLost::kKill : OnLost::kIgnore;
  if (options.on_lost != "kill" && options.on_lost != "ignore")
    return usage("--on-lost: stop, kill or ignore");
  return times;
}

// Ours alone: CMD must not keep it open.
Result<int> to_report_fd(const Options& options) {
  if (options.report_fd == kNone) return -1;
  if (options.report_fd < 3 || options.report_fd > 1'000'000)
    return usage("--report-fd: 3 or greater; 0 to 2 are the command's");
  const int fd = static_cast<int>(options.report_fd);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return usage(fmt::format("--report-fd {}: it is not open", fd));
  return fd;
}

// `postgres:orders` → the words that advance it to the token in the command's environment.
Result<std::vector<std::string>> to_guard_command(const Options& options, const std::string& guard) {
  const std::size_t colon = guard.find(':');
  const std::string kind = guard.substr(0, colon);
  if (colon == guard.npos || colon + 1 == guard.size() || kind != "postgres") {
    return usage(
        fmt::format("--guard: postgres:RESOURCE, such as postgres:orders; \"{}\" is not", printable(guard)));
  }
  std::vector<std::string> words{"/proc/self/exe",        "guard",  "advance", kind,
                                 guard.substr(colon + 1), "--held", "--wait",  to_text(options.guard_wait)};
  if (!options.guard_dsn.empty()) words.insert(words.end(), {"--dsn", options.guard_dsn});
  if (options.guard_evict) words.emplace_back("--evict");
  return words;
}

Result<RunRequest> to_request(const Console& console, const Options& options) {
  if (options.command.empty()) return usage("which command? Write it behind `--`: pawl run LOCK -- CMD…");
  RunRequest request;
  auto call = to_call(options.common, default_owner(getpid()));
  if (!call) return call.error();
  const auto times = to_times(options);
  if (!times) return times.error();
  const auto report_fd = to_report_fd(options);
  if (!report_fd) return report_fd.error();
  const char* inherited = std::getenv("PAWL_LOCK");
  request.names = {call->locks, call->owner, console.addresses(), inherited == nullptr ? "" : inherited};
  if (const auto held = already_held(call->locks, request.names.inherited_locks)) {
    return usage(fmt::format(
        "{} is already held by the `pawl run` around this one (PAWL_LOCK says so); waiting for it would "
        "be waiting for ourselves. Run the command without another `pawl run`, or take a lock of another "
        "name. If it is not so, unset PAWL_LOCK.",
        printable(*held)));
  }
  request.call = std::move(*call);
  request.patience = options.common.patience();
  request.times = *times;
  request.command = options.command;
  for (const std::string& guard : options.guards) {
    auto words = to_guard_command(options, guard);
    if (!words) return words.error();
    request.guard_commands.push_back(*std::move(words));
  }
  request.not_acquired = static_cast<int>(options.common.not_acquired);
  request.report_fd = *report_fd;
  return request;
}

int run(Console& console, const Options& options) {
  auto request = to_request(console, options);
  if (!request) return console.fail(request.error());
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  return Runner(console, std::move(*request), std::move(*endpoints)).run();
}

}  // namespace

void add_run(CommandLine& line) {
  auto options = std::make_shared<Options>();
  Verb verb = line.verb("run", "run a command while holding a lock, and never longer", Talks::kToPawld);
  options->common.declare(verb);
  verb.text("--on-lost", "stop|kill|ignore", options->on_lost,
            "when the lease cannot be confirmed: TERM, then KILL (stop, the default), KILL, or nothing");
  verb.duration(
      "--kill-after", options->kill_after,
      "TERM so long before the lease is over (default TTL/6, at most TTL/3); KILL follows max(100ms, "
      "TTL/20) before");
  verb.number("--report-fd", options->report_fd, "one JSON line per event to this descriptor, for programs");
  verb.texts("--guard", "KIND:RESOURCE", options->guards,
             "advance this guard before the command starts, e.g. postgres:orders: from then on former "
             "holders cannot "
             "write to it");
  verb.text("--guard-dsn", "DSN", options->guard_dsn,
            "where the guards are (PAWL_GUARD_DSN); see `pawl guard advance`");
  verb.duration("--guard-wait", options->guard_wait,
                "how long to wait for older transactions that are still open (default 5s)");
  verb.flag("--guard-evict", options->guard_evict, "then end them");
  verb.rest(options->command);
  verb.examples(
      "  pawl run reports/nightly -- ./report.sh             wait for it, run, give it back\n"
      "  pawl run reports/nightly -n -E 0 -- ./report.sh     elsewhere already? then not here, and that is "
      "fine\n"
      "  pawl run a --and b -w 30s --max-hold 10m -- make    both or neither; never longer than ten minutes\n"
      "\n"
      "The command gets PAWL_TOKEN (send it with every write), PAWL_LOCK, PAWL_LEASE, PAWL_OWNER, "
      "PAWL_ADDR,\n"
      "PAWL_TTL_MS, PAWL_DEADLINE_BOOTTIME_NS, PAWL_FLOOR, PAWL_SLOT (with --limit) and PAWL_HELD=1.\n"
      "It has a process group of its own; signals sent to pawl reach all of it. When it ends, or the lease "
      "does,\n"
      "everything in the group is stopped before the lock can pass on.\n"
      "\n"
      "Exit codes: the command's own, 128+N when signal N ended it (or the wait); 64 usage, 69 pawld "
      "unreachable,\n"
      "75 not acquired, 77 not permitted, 121 a guard has seen a newer token, 122 lease lost, 124 --max-hold "
      "reached, 125 pawl failed, 126 not\n"
      "executable, 127 not found.\n"
      "\n"
      "What it cannot do: reach a process that left the group (setsid); stop the rest of the group when pawl "
      "itself\n"
      "is killed with KILL (the command itself is killed then); keep a machine that was frozen past the "
      "deadline from\n"
      "running the command for a moment before pawl kills it. Only a guarded resource, which checks the "
      "token, can.");
  verb.run([options](Console& console) { return run(console, *options); });
}

}  // namespace pawl::cli
