#include "cli/run_request.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/duration.h"
#include "base/text.h"
#include "cli/signals.h"
#include "guard/kinds.h"

namespace pawl::cli {
namespace {

constexpr Millis kTtlMin{1'000};

Error usage(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

Result<RunTimes> to_times(const RunOptions& options) {
  const LeaseTerms& terms = options.common.terms;
  const Millis ttl = terms.ttl;
  if (ttl < kTtlMin) return usage("--ttl: at least 1s for run, to leave time to stop the command");
  RunTimes times{.ttl = ttl,
                 .kill_after = options.kill_after,
                 .max_hold = terms.max_hold,
                 .max_stopped = options.max_stopped};
  if (times.kill_after == RunOptions::kDefault) times.kill_after = ttl / 6;
  if (times.kill_after > ttl / 3) {
    return usage(fmt::format("--kill-after: at most a third of the TTL, which is {} here",
                             to_text(ttl / 3)));
  }
  if (options.on_lost == "stop") return times;
  times.on_lost = options.on_lost == "kill" ? OnLost::kKill : OnLost::kIgnore;
  if (options.on_lost != "kill" && options.on_lost != "ignore")
    return usage("--on-lost: stop, kill or ignore");
  return times;
}

Result<OnAsk> to_on_ask(const std::string& text) {
  if (text == "report") return OnAsk{};
  if (text == "ignore") return OnAsk{.report = false};
  const int signal = signal_from_name(text);
  if (signal == 0 || signal == SIGKILL || signal == SIGSTOP) {
    return usage(
        fmt::format("--on-ask: report, ignore, or a signal that the command can handle, "
                    "such as TERM or USR1; got \"{}\"",
                    printable(text)));
  }
  return OnAsk{.signal = signal};
}

// CMD must not inherit it.
Result<int> to_report_fd(const RunOptions& options) {
  if (options.report_fd == RunOptions::kNone) return -1;
  if (options.report_fd < 3 || options.report_fd > 1'000'000)
    return usage("--report-fd: 3 or greater; 0 to 2 belong to the command");
  const int fd = static_cast<int>(options.report_fd);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return usage(fmt::format("--report-fd {}: not an open descriptor", fd));
  return fd;
}

// `postgres:orders` → the words that advance it to the token in the command's
// environment.
Result<std::vector<std::string>> to_guard_command(const Console& console, const RunOptions& options,
                                                  const std::string& text, const std::string& dsn) {
  const auto named = guard::parse_guarded(text);
  if (!named || named->resource.empty()) {
    return usage(fmt::format("--guard: expected KIND:RESOURCE with KIND {}; got \"{}\"{}",
                             guard::kind_names(), printable(text),
                             named ? "" : " (" + printable(named.error().detail) + ")"));
  }
  const char* environment = std::getenv("PAWL_GUARD_DSN");
  const bool anywhere = !dsn.empty() || (environment != nullptr && *environment != '\0');
  if (named->kind->location == guard::Location::kFile && !anywhere) {
    return usage(fmt::format("--guard {}: name its file with --guard-dsn or PAWL_GUARD_DSN",
                             printable(text)));
  }
  std::vector<std::string> words{
      "/proc/self/exe", "guard",     "advance", std::string(named->kind->name), named->resource,
      "--held",         "--for-run", "--wait",  to_text(options.guard_wait)};
  if (console.json()) words.emplace_back("--json");
  if (!console.auth_file().empty()) words.insert(words.end(), {"--auth-file", console.auth_file()});
  if (!dsn.empty()) words.insert(words.end(), {"--dsn", dsn});
  if (options.guard_evict) words.emplace_back("--evict");
  return words;
}

}  // namespace

Result<RunRequest> to_request(const Console& console, const RunOptions& options) {
  RunRequest request;
  auto call = to_call(options.common, default_owner(getpid()));
  if (!call) return call.error();
  const auto times = to_times(options);
  if (!times) return times.error();
  const auto on_ask = to_on_ask(options.on_ask);
  if (!on_ask) return on_ask.error();
  const auto report_fd = to_report_fd(options);
  if (!report_fd) return report_fd.error();
  const char* inherited = std::getenv("PAWL_LOCK");
  request.names = {call->locks, call->owner, console.addresses(),
                   inherited == nullptr ? "" : inherited};
  if (const auto held = already_held(call->locks, request.names.inherited_locks)) {
    return usage(
        fmt::format("{} is already held by the enclosing `pawl run` (see PAWL_LOCK); this one "
                    "would wait for itself. Run "
                    "the command without a second `pawl run`, or use another lock. If PAWL_LOCK is "
                    "wrong, unset it.",
                    printable(*held)));
  }
  request.call = std::move(*call);
  request.patience = options.common.patience();
  request.times = *times;
  request.on_ask = *on_ask;
  request.command = options.command;
  request.verbose = options.verbose;
  const auto dsns = guard::assign_dsns(options.guards, options.guard_dsns);
  if (!dsns) return usage("--guard-dsn: " + printable(dsns.error().detail));
  if (!options.guards.empty() && request.call.terms.mode == Mode::kLimit &&
      request.call.terms.limit > 1) {
    return usage(
        "--guard cannot be combined with --limit: a guard admits one holder, and the second one "
        "would lock out the first. Give each holder a lock and a guarded resource of its own, or "
        "leave out --guard.");
  }
  for (std::size_t i = 0; i < options.guards.size(); ++i) {
    auto words = to_guard_command(console, options, options.guards[i], (*dsns)[i]);
    if (!words) return words.error();
    request.guard_commands.push_back(*std::move(words));
  }
  request.not_acquired = static_cast<int>(options.common.not_acquired);
  request.report_fd = *report_fd;
  return request;
}

}  // namespace pawl::cli
