// pawl drill: what happens when a worker is frozen, cut off or killed; on a scratch database, or on
// the user's own.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/drill_fence_watch.h"
#include "cli/drill_hints.h"
#include "cli/drill_report.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "drill/report/page.h"
#include "drill/run.h"
#include "drill/worker.h"

namespace pawl::cli {
namespace {

using drill::Drill;
using drill::DrillConfig;
using drill::PawldUse;

constexpr const char* kAll = "all";
constexpr std::uint64_t kRoundsMax = 1'000;
constexpr Millis kQuietWait{200};    // Shorter waits are not shown.
constexpr Millis kDrillTtlMin{500};  // On a busy machine shorter leases expire by themselves.

struct DrillArguments {
  std::string drill;     // a name, or kAll
  std::string guard;     // KIND or KIND:RESOURCE; empty: everything is throw-away
  std::string resource;  // the user's own; empty: a scratch resource
  GuardTarget target;
  std::string mode;    // of a scratch resource; empty: enforce
  std::string report;  // path of the report page
  bool yes = false;
  // Lock, TTL, wait, rounds and statement as given.
  DrillConfig config;

  // Neither a database nor a pawld of the user's takes part.
  [[nodiscard]] bool all_throwaway() const { return guard.empty(); }
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

std::vector<const Drill*> selected(const DrillArguments& options) {
  std::vector<const Drill*> list;
  for (const Drill& each : drill::all_drills()) {
    if (options.drill == kAll || options.drill == each.name) list.push_back(&each);
  }
  return list;
}

// A name that nobody else uses.
std::string scratch_lock() {
  SystemRandom random;
  return fmt::format("pawl-drill/{:08x}", random.next() & 0xffff'ffff);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Without --guard: the options that would need the user's pawld or database.
Result<void> check_all_throwaway(const Console& console, const DrillArguments& options) {
  if (!options.target.file.empty())
    return usage(fmt::format("--file needs a guard: pawl drill {} --guard sqlite --file {}",
                             options.drill, printable(options.target.file)));
  if (!options.target.dsn.empty())
    return usage(fmt::format("--dsn needs a guard: --guard {}", guard::kind_names()));
  if (console.address_given())
    return usage("--addr needs --guard: without it the drill uses a throw-away pawld");
  return {};
}

Result<void> parse_guard(DrillArguments& options) {
  if (options.guard.ends_with(':'))
    return usage(
        "--guard: no resource after the colon: name it, or leave out the colon for a scratch "
        "resource");
  const auto named = guard::parse_guarded(options.guard);
  if (!named) return usage("--guard: " + printable(named.error().detail));
  options.target.kind = named->kind->name;
  options.resource = named->resource;
  if (!options.config.target.statement.empty() &&
      !named->kind->abilities.has(guard::Ability::kTransactions))
    return usage(fmt::format("--write: a guard in {} has no statements; its writes are only judged",
                             named->kind->title));
  return {};
}

Result<void> check(const Console& console, DrillArguments& options) {
  const auto target =
      options.all_throwaway() ? check_all_throwaway(console, options) : parse_guard(options);
  if (!target) return target;
  if (!options.resource.empty() && !options.mode.empty())
    return usage(
        "--mode is for a scratch resource; change the mode of your own with pawl guard mode");
  if (options.resource.empty() && !options.config.target.statement.empty())
    return usage("--write is for a resource of yours, which --guard names: postgres:orders");
  if (options.config.ttl < kDrillTtlMin)
    return usage(fmt::format("--ttl: at least {}; on a busy machine shorter leases expire",
                             to_text(kDrillTtlMin)));
  if (options.config.rounds < 1 || options.config.rounds > kRoundsMax)
    return usage(fmt::format("--rounds: 1 to {}", kRoundsMax));
  const std::filesystem::path folder = std::filesystem::path(options.report).parent_path();
  if (!folder.empty() && ::access(folder.c_str(), W_OK) != 0)
    return usage(fmt::format("--report: no writable directory {}", printable(folder.string())));
  if (options.mode.empty()) options.mode = "enforce";
  return {};
}

// Completes the configuration with what does not depend on the resource.
void configure(Console& console, DrillConfig& config, const StopSignals& signals) {
  config.auth = console.auth();
  config.tls = {variable("PAWL_TLS_CA"), variable("PAWL_TLS_CERT"), variable("PAWL_TLS_KEY"), ""};
  config.stop_fd = signals.fd();
  if (console.json()) return;
  config.on_log = [&console](const drill::LogEntry& entry) {
    console.data(to_line(console, entry));
  };
  config.on_wait = [&console](std::string_view what, drill::Moment waited) {
    if (waited < kQuietWait) return;
    console.progress(fmt::format("waiting for {} … {:.1f} s", what,
                                 std::chrono::duration<double>(waited).count()));
  };
}

DrillConfig scratch_config(Console& console, const DrillArguments& options) {
  DrillConfig config = options.config;
  config.target = {};
  config.target.kind = guard::serverless_kind().name;
  config.mode = options.mode;
  if (config.lock.empty() || !options.resource.empty()) config.lock = scratch_lock();
  if (options.all_throwaway()) return config;
  config.pawld = console.targets();
  config.target.kind = options.target.kind;
  config.target.where = options.target.where();
  return config;
}

// The user's own resource, as its guard describes it.
struct OwnResource {
  DrillConfig config;
  std::shared_ptr<FenceWatch> watch;
};

Result<OwnResource> own_resource(Console& console, const DrillArguments& options) {
  auto opened = options.target.open();
  if (!opened) return opened.error();
  const std::string guard = options.resource.substr(0, options.resource.find(':'));
  const auto found = (*opened)->status(guard);
  if (!found) return found.error();
  if (found->empty())
    return usage(fmt::format("there is no guard \"{}\" there: pawl guard status shows them",
                             printable(guard)));
  const guard::Status& status = found->front();
  if (status.kind != "static" && guard == options.resource)
    return usage(fmt::format("{} has a fence for each key: name one, such as {}:{}:7", guard,
                             options.target.kind, guard));
  OwnResource own{options.config, {}};
  DrillConfig& config = own.config;
  config.pawld = console.targets();
  config.target.kind = options.target.kind;
  config.target.where = options.target.where();
  config.target.resource = options.resource;
  config.target.watched = !status.tables.empty();
  config.tables = status.tables;
  config.mode = status.mode;
  config.require_token = status.require_token;
  // A DSN may contain a password.
  if (!options.target.file.empty()) config.guard_options = "--file " + options.target.file;
  if (!options.target.dsn.empty()) config.guard_options = "--dsn DSN";
  if (config.lock.empty()) config.lock = options.resource;
  own.watch =
      std::make_shared<FenceWatch>(console, *std::move(opened), options.resource, config.lock);
  config.before_advance = [watch = own.watch](std::uint64_t token) {
    return watch->before_advance(token);
  };
  return own;
}

// What the drill will do to the user's own resource.
std::string warning(const Console& console, const OwnResource& own) {
  const DrillConfig& config = own.config;
  const std::string resource = printable(config.target.resource);
  const bool enforces = config.mode == "enforce";
  std::string text = fmt::format(
      "The drill acquires the lock {0} at {1} several times, for a few TTLs ({2}) each. Programs "
      "that want this lock wait meanwhile.\n"
      "It raises the fence of {3} from {4} to the tokens that it is granted. After that, a write "
      "to "
      "{3} with an older token, whatever its lock, {5} (guard mode {6}).\n",
      printable(config.lock), console.addresses(), to_text(config.ttl), resource,
      own.watch->fence().value_or(0), enforces ? "is refused" : "counts as stale", config.mode);
  const std::string& statement = config.target.statement;
  if (statement.empty())
    return text + "Nothing is written: the guard judges each write, and it is rolled back.";
  return text + fmt::format("Nothing stays written: each write runs this and is rolled back: {}",
                            printable(statement));
}

// Whether to continue with the user's own resource. An error: the drill must not run, or nobody
// could be asked.
Result<bool> confirmed(Console& console, const DrillArguments& options, const OwnResource& own) {
  const auto finding = own.watch->examine();
  if (!finding) return finding.error();
  if (finding->use == FenceUse::kWrongLock) return usage(finding->detail);
  if (finding->use != FenceUse::kUnproven)
    return options.yes ? Result<bool>(true) : confirm(console, warning(console, own), "Go on?");
  if (options.config.lock.empty())
    return usage(fmt::format("{} Name the lock that the programs that write to {} take: --lock",
                             finding->detail, printable(options.resource)));
  if (options.yes || !console.interactive())
    return usage(fmt::format(
        "{} --yes does not cover that. Run the program that takes {} once, so that pawld "
        "knows its token, or start the drill on a terminal and answer the question",
        finding->detail, printable(own.config.lock)));
  auto answer = confirm(console, warning(console, own) + "\n" + finding->detail, "Go on anyway?");
  if (answer && *answer) own.watch->accept();
  return answer;
}

// Fails when the user's pawld or guard cannot be reached.
Result<void> check_reachable(Console& console, const DrillArguments& options,
                             const std::vector<const Drill*>& drills) {
  const bool needs_pawld = std::any_of(drills.begin(), drills.end(), [](const Drill* each) {
    return each->pawld == PawldUse::kAny;
  });
  if (needs_pawld) {
    const std::string& lock = options.config.lock;
    if (const auto reply = console.ask({"INSPECT", lock.empty() ? "pawl-drill" : lock}); !reply)
      return reply.error();
  }
  if (const auto opened = options.target.open(); !opened) return opened.error();
  return {};
}

// Where the report of this drill goes; with the drill's name in it when there are several. Without
// --report, a drill that is all throw-away makes a new file in the temporary directory. Empty: no
// report.
std::string report_path(const Console& console, const DrillArguments& options,
                        const std::string& drill) {
  if (options.report.empty() && options.all_throwaway() && !console.json()) {
    constexpr std::string_view kSuffix = ".html";
    std::error_code failed;
    std::string path = std::filesystem::temp_directory_path(failed) /
                       fmt::format("pawl-drill-{}-XXXXXX{}", drill, kSuffix);
    const UniqueFd made(::mkstemps(path.data(), static_cast<int>(kSuffix.size())));
    return made ? path : "";
  }
  const std::filesystem::path path = options.report;
  if (path.empty() || options.drill != kAll) return path;
  std::filesystem::path name = path.stem();
  name += "-" + drill;
  name += path.extension();
  return path.parent_path() / name;
}

// Runs drills, prints their output, and collects the exit code.
class DrillRunner {
 public:
  DrillRunner(Console& console, const DrillArguments& options)
      : console_(console), options_(options) {
    json_.object().key("drills").array();
  }

  // False: do not run the next one, because it was interrupted or its output cannot be written.
  bool run(const Drill& drill, DrillConfig config) {
    if (!console_.json() &&
        !console_.data(
            fmt::format("{}: {}\n", console_.paint(Paint::kStrong, drill.name), drill.summary))) {
      exit_ = kExitOutput;
      return false;
    }
    configure(console_, config, signals_);
    const drill::DrillResult result = drill::run_drill(drill, std::move(config));
    console_.end_progress();
    if (result.interrupted) {
      console_.note("pawl: stopped; nothing is left behind");
      exit_ = kExitSignalled + signals_.take();
      return false;
    }
    if (result.error) return on_error(drill, *result.error);
    passed_ = passed_ && result.record->verdict.passed;
    write(json_, *result.record);
    if (!console_.json() && !console_.data(to_verdict(console_, *result.record)))
      exit_ = kExitOutput;
    return exit_ != kExitOutput && save_report(*result.record);
  }

  // Prints what remains, and returns the exit code.
  int finish() {
    if (exit_ != kExitOk) return exit_;
    json_.end().key("passed").boolean(passed_ && !error_).end();
    // A single drill that could not be carried out is simply an error.
    if (error_ && options_.drill != kAll) return console_.fail(*error_);
    if (console_.json() && !console_.data(json_)) return kExitOutput;
    if (!console_.json() && options_.all_throwaway() &&
        !console_.data("\n" + own_database_hint(options_.drill)))
      return kExitOutput;
    if (!passed_) return kExitNothingDone;
    return error_ ? exit_code(error_->code) : kExitOk;
  }

 private:
  bool on_error(const Drill& drill, const Error& why) {
    error_ = Error{
        why.code, fmt::format("the drill {} could not be carried out: {}", drill.name, why.detail)};
    if (options_.drill == kAll) console_.note("pawl: " + printable(error_->detail));
    return true;
  }

  bool save_report(const drill::DrillRecord& record) {
    const std::string path = report_path(console_, options_, record.drill);
    if (path.empty()) return true;
    std::ofstream file(path, std::ios::trunc);
    file << drill::report_page(record);
    if (file.flush()) {
      if (!console_.json()) console_.note("report: " + path);
      return true;
    }
    exit_ = console_.fail({Code::kUnavailable, fmt::format("cannot write the report {}: {}", path,
                                                           std::strerror(errno))},
                          kExitOutput);
    return false;
  }

  Console& console_;
  const DrillArguments& options_;
  StopSignals signals_;
  Json json_;
  bool passed_ = true;
  std::optional<Error> error_;  // of the last drill that could not be carried out
  int exit_ = kExitOk;
};

int drill_verb(Console& console, DrillArguments& options) {
  if (const auto fine = check(console, options); !fine) return console.fail(fine.error());
  const std::vector<const Drill*> drills = selected(options);
  const bool own = !options.resource.empty();
  if (own && drills.size() == 1 && drills.front()->pawld == PawldUse::kThrowaway)
    return console.fail(usage(
        fmt::format("{} uses a throw-away pawld, whose tokens your pawld does not know. It works "
                    "with a scratch resource only: --guard {}",
                    options.drill, options.target.kind)));
  if (!options.all_throwaway()) {
    if (const auto fine = check_reachable(console, options, drills); !fine)
      return console.fail(fine.error());
  }
  std::optional<OwnResource> resource;
  if (own) {
    auto found = own_resource(console, options);
    if (!found) return console.fail(found.error());
    resource = *std::move(found);
    const auto go_on = confirmed(console, options, *resource);
    if (!go_on) return console.fail(go_on.error());
    if (!*go_on) return kExitNothingDone;
  }
  DrillRunner runner(console, options);
  for (const Drill* each : drills) {
    // A throw-away pawld's tokens must not reach the user's own resource.
    const bool scratch = !resource || each->pawld == PawldUse::kThrowaway;
    if (!runner.run(*each, scratch ? scratch_config(console, options) : resource->config)) break;
  }
  return runner.finish();
}

// The list of drills in --help.
std::string drill_list() {
  std::string list;
  for (const Drill& each : drill::all_drills())
    list += fmt::format("  {:<20} {}\n", each.name, each.summary);
  return list;
}

}  // namespace

void add_drill(CommandLine& line) {
  auto options = std::make_shared<DrillArguments>();
  Verb verb = line.verb("drill",
                        "freeze, cut off and kill worker processes, and check whether a guard "
                        "refuses their late writes",
                        Talks::kToPawld);
  verb.choice("DRILL", options->drill, names(), "which drill; see below");
  verb.text("--guard", "KIND[:RESOURCE]", options->guard,
            (guard::kind_names() +
             ": use your pawld, and a scratch resource in your database; KIND:RESOURCE "
             "(postgres:orders): your own resource (default: a throw-away pawld and SQLite file)")
                .c_str());
  verb.text("--guard-dsn,--dsn", "DSN", options->target.dsn,
            "where the database is: a URI or key=value pairs (PAWL_GUARD_DSN; else PGHOST, …, or "
            "~/.my.cnf)");
  verb.text("--file", "PATH", options->target.file, "sqlite: the file, same as --guard-dsn");
  verb.not_both("--file", "--guard-dsn");
  verb.text(
      "--mode", "MODE", options->mode,
      "of the scratch resource's guard: enforce (default), shadow, observe, or none: no guard");
  verb.text(
      "--write", "SQL", options->config.target.statement,
      "your own resource: the statement of each write, which is always rolled back; :token in "
      "it stands for the token (default: the guard only judges)");
  verb.text("--lock", "LOCK", options->config.lock,
            "the lock that the workers take; with your own resource, the lock of the programs that "
            "write to it (default: the name of the resource, if no other holder can be shut out; "
            "for a scratch resource a new name)");
  verb.duration("-t,--ttl", options->config.ttl, "of the leases (default 2s)");
  verb.duration("-w,--wait", options->config.lock_wait,
                "how long to wait for the lock at most (default 10s)");
  verb.number("--rounds", options->config.rounds, "number of repetitions (default 1)");
  verb.text("--report", "FILE", options->report,
            "write an HTML page that shows what happened; `all` writes one per drill: "
            "FILE-pause.html, … (default without --guard: a file in the temporary directory)");
  verb.flag("--yes", options->yes,
            "do not ask before your own resource is used, if pawld knows that its writers take "
            "LOCK");
  static const std::string examples =
      "  pawl drill pause                                        needs nothing: a throw-away pawld "
      "and SQLite file\n"
      "  pawl drill pause --mode none                            the same without a guard: the "
      "late "
      "write gets through\n"
      "  pawl drill pause --guard postgres --dsn 'dbname=shop'   your pawld, a scratch table in "
      "your "
      "database\n"
      "  pawl drill all --guard sqlite --file shop.db --json\n"
      "  pawl drill partition --guard postgres --mode shadow     what a guard in shadow lets "
      "through\n"
      "  pawl drill pause --guard postgres:invoices --lock billing/nightly\n"
      "                                                          your own guard, in its present "
      "mode\n"
      "  pawl drill pause --guard postgres:orders --write 'UPDATE orders SET n = n WHERE id = 1'\n"
      "                                                          also whether the table refuses "
      "it; "
      "rolled back\n"
      "  pawl drill pause --guard postgres --report drill.html   a page to attach to a change "
      "request\n"
      "\n"
      "A drill starts its own worker processes. They take a lock, write to the resource, and lose "
      "the lock without\n"
      "noticing. Then they write with the old token, which a guard refuses: by a call that asks, "
      "with a token that only\n"
      "the write is judged by, and without one. The drills:\n"
      "\n" +
      drill_list() +
      "  all                  all of them\n"
      "The last four always use a throw-away pawld and a scratch resource.\n"
      "\n"
      "With your own resource the fence rises, and holders of older tokens are shut out. So the "
      "drill takes the lock of\n"
      "the programs that write to it. It refuses to start when the token of the fence holds "
      "another "
      "lock now, and checks\n"
      "that again before each advance.\n"
      "\n"
      "Exit code 0: stale writes were sent, and all were refused. 1: one got through, the guard "
      "does not enforce or\n"
      "reports an error, the write of --write changes no row or another table, or the guard "
      "refused "
      "the holder.\n"
      "64, 69, 75, 77: the drill could not be carried out.";
  verb.examples(examples.c_str());
  verb.run([options](Console& console) { return drill_verb(console, *options); });
}

// pawl drill-worker: a worker process, started by a drill; not for people.
void add_drill_worker(CommandLine& line) {
  Verb verb = line.verb("drill-worker", "a worker process of a drill", Talks::kToNobody);
  verb.hide();
  verb.run([](Console&) { return drill::run_worker(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace pawl::cli
