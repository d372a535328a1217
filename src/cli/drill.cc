// pawl drill: what happens when a worker is frozen, cut off or killed, on the user's own database.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
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
#include "cli/drill_report.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "drill/page.h"
#include "drill/run.h"

namespace pawl::cli {
namespace {

using drill::Drill;
using drill::Whose;

constexpr const char* kAll = "all";
constexpr std::uint64_t kRoundsMax = 1'000;
constexpr Millis kQuietWait{200};
constexpr Millis kDrillTtlMin{500};  // Less than that a busy machine takes away by itself.

struct DrillArguments {
  std::string drill;
  std::string guard;     // KIND or KIND:RESOURCE
  std::string resource;  // the user's own; empty: a scratch one
  GuardTarget target;
  std::string lock;
  std::string mode;       // of a scratch resource; empty: enforce
  std::string statement;  // what a write to the user's own does; empty: it is judged only
  std::string report;     // where the page goes
  bool yes = false;
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

std::vector<const Drill*> chosen(const DrillArguments& options) {
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

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<void> check(DrillArguments& options) {
  if (options.guard.ends_with(':'))
    return usage(
        "--guard: no resource: name it after the colon, or leave out the colon for a scratch "
        "resource");
  const auto named = guard::parse_guarded(options.guard);
  if (!named) return usage("--guard: " + printable(named.error().detail));
  options.target.kind = named->kind->name;
  options.resource = named->resource;
  if (!options.statement.empty() && !named->kind->abilities.has(guard::Ability::kTransactions))
    return usage(fmt::format("--write: a guard in {} has no statements; its writes are only judged",
                             named->kind->title));
  if (!options.resource.empty() && !options.mode.empty())
    return usage(
        "--mode is for a scratch resource; change the mode of your own with pawl guard mode");
  if (options.resource.empty() && !options.statement.empty())
    return usage("--write is for a resource of yours, which --guard names: postgres:orders");
  if (options.ttl < kDrillTtlMin)
    return usage(fmt::format("--ttl: at least {}, or a busy machine loses leases by itself",
                             to_text(kDrillTtlMin)));
  if (options.rounds < 1 || options.rounds > kRoundsMax)
    return usage(fmt::format("--rounds: 1 to {}", kRoundsMax));
  const std::filesystem::path folder = std::filesystem::path(options.report).parent_path();
  if (!folder.empty() && ::access(folder.c_str(), W_OK) != 0)
    return usage(fmt::format("--report: no directory {} that can be written to",
                             printable(folder.string())));
  if (options.mode.empty()) options.mode = "enforce";
  return {};
}

// What a drill writes to, and where its lock is.
struct Scene {
  drill::Target target;
  std::string mode;
  std::string lock;
  std::shared_ptr<FenceWatch> watch = {};  // of the user's own resource
};

Scene scratch_scene(const DrillArguments& options) {
  Scene scene{{options.target.kind, options.target.where(), ""}, options.mode, options.lock};
  if (scene.lock.empty() || !options.resource.empty()) scene.lock = scratch_lock();
  return scene;
}

// The user's own resource, as its guard describes it.
Result<Scene> own_scene(Console& console, const DrillArguments& options) {
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
  Scene scene{
      {options.target.kind, options.target.where(), options.resource}, status.mode, options.lock};
  scene.target.watched = !status.tables.empty();
  scene.target.statement = options.statement;
  if (scene.lock.empty()) scene.lock = options.resource;
  scene.watch =
      std::make_shared<FenceWatch>(console, *std::move(opened), options.resource, scene.lock);
  return scene;
}

// What will happen to the user's own resource.
std::string warning(const Console& console, const DrillArguments& options, const Scene& scene) {
  const std::string resource = printable(options.resource);
  const std::string lock = printable(scene.lock);
  const auto fence = scene.watch->fence();
  std::string text = fmt::format(
      "The drill takes the lock {} at {} several times, for a few TTLs ({}) each. Programs that "
      "want this "
      "lock "
      "wait meanwhile.\n"
      "It raises the fence of {} from {} to the tokens that it is granted. A program that writes "
      "to {} with "
      "an "
      "older token, under whichever lock, {}.\n",
      lock, console.addresses(), to_text(options.ttl), resource, fence.value_or(0), resource,
      scene.mode == "enforce"
          ? "is refused from then on (guard mode enforce)"
          : fmt::format("counts as stale from then on (guard mode {})", scene.mode));
  if (options.statement.empty())
    return text + "Nothing is written: the guard judges each write, and it is rolled back.";
  text += fmt::format("Each write that the guard lets pass runs: {}", printable(options.statement));
  if (scene.mode != "enforce") text += fmt::format(" (in mode {} stale ones as well)", scene.mode);
  return text;
}

// Whether to go on with the user's own resource. An error: the drill must not, or nobody could be
// asked.
Result<bool> agreed(Console& console, const DrillArguments& options, const Scene& scene) {
  const auto finding = scene.watch->look();
  if (!finding) return finding.error();
  if (finding->use == FenceUse::kWrongLock) return usage(finding->detail);
  if (finding->use != FenceUse::kUnproven)
    return options.yes ? Result<bool>(true)
                       : confirm(console, warning(console, options, scene), "Go on?");
  if (options.lock.empty())
    return usage(fmt::format("{} Name the lock that the programs that write to {} take: --lock",
                             finding->detail, printable(options.resource)));
  if (options.yes || !console.interactive())
    return usage(fmt::format(
        "{} --yes does not cover that. Run the program that takes {} once, so that pawld "
        "knows its token, or start the drill on a terminal and answer the question",
        finding->detail, printable(scene.lock)));
  auto answer =
      confirm(console, warning(console, options, scene) + "\n" + finding->detail, "Go on anyway?");
  if (answer && *answer) scene.watch->accept();
  return answer;
}

drill::Order to_order(Console& console, const DrillArguments& options, const Scene& scene,
                      const StopSignals& signals) {
  drill::Order order;
  order.rounds = options.rounds;
  drill::Setting& setting = order.setting;
  setting.pawld = console.targets();
  setting.auth = console.auth();
  setting.tls = {variable("PAWL_TLS_CA"), variable("PAWL_TLS_CERT"), variable("PAWL_TLS_KEY"), ""};
  setting.lock = scene.lock;
  setting.ttl = options.ttl;
  setting.patience = options.wait;
  setting.target = scene.target;
  setting.mode = scene.mode;
  setting.stop = signals.fd();
  if (scene.watch)
    setting.before_advance = [watch = scene.watch](std::uint64_t token) {
      return watch->before_advance(token);
    };
  if (console.json()) return order;
  setting.tell = [&console](const drill::Line& line) { console.data(to_line(console, line)); };
  setting.wait = [&console](std::string_view what, drill::Moment waited) {
    if (waited < kQuietWait) return;  // Most waits are over before anyone could read what for.
    console.progress(fmt::format("waiting for {} … {:.1f} s", what,
                                 std::chrono::duration<double>(waited).count()));
  };
  return order;
}

// Whether there is a pawld to drill with, and a guard.
Result<void> look(Console& console, const DrillArguments& options,
                  const std::vector<const Drill*>& drills) {
  const bool users = std::any_of(drills.begin(), drills.end(),
                                 [](const Drill* each) { return each->pawld == Whose::kUsers; });
  if (users) {
    if (const auto there =
            console.ask({"INSPECT", options.lock.empty() ? "pawl-drill" : options.lock});
        !there)
      return there.error();
  }
  if (const auto opened = options.target.open(); !opened) return opened.error();
  return {};
}

// FILE.html as it is for one drill; with the drill's name in it when there are several.
std::string report_path(const DrillArguments& options, const std::string& drill) {
  const std::filesystem::path path = options.report;
  if (options.drill != kAll) return path;
  std::filesystem::path name = path.stem();
  name += "-" + drill;
  name += path.extension();
  return path.parent_path() / name;
}

// The exit code, and what is still to be told.
class Session {
 public:
  Session(Console& console, const DrillArguments& options) : console_(console), options_(options) {
    json_.object().key("drills").array();
  }

  // False: it was interrupted, or nobody reads what it says.
  bool play(const Drill& drill, const Scene& scene) {
    if (!console_.json() &&
        !console_.data(
            fmt::format("{}: {}\n", console_.paint(Paint::kStrong, drill.name), drill.about))) {
      exit_ = kExitOutput;
      return false;
    }
    const drill::Ended ended = drill::run(drill, to_order(console_, options_, scene, signals_));
    console_.end_progress();
    if (ended.interrupted) {
      console_.note("pawl: stopped; nothing is left behind");
      exit_ = kExitSignalled + signals_.take();
      return false;
    }
    if (ended.trouble) return give_up(drill, *ended.trouble);
    passed_ = passed_ && ended.record->verdict.passed;
    write(json_, *ended.record);
    if (!options_.report.empty() && !save(*ended.record)) return false;
    if (!console_.json() && !console_.data(to_verdict(console_, *ended.record)))
      exit_ = kExitOutput;
    return exit_ != kExitOutput;
  }

  int end() {
    if (exit_ != kExitOk) return exit_;
    json_.end().key("passed").boolean(passed_ && !impossible_).end();
    // One alone that could not be carried out is simply an error.
    if (impossible_ && options_.drill != kAll) return console_.fail(*impossible_);
    if (console_.json() && !console_.data(json_)) return kExitOutput;
    if (!passed_) return kExitNothingDone;
    return impossible_ ? exit_code(impossible_->code) : kExitOk;
  }

 private:
  bool give_up(const Drill& drill, const Error& why) {
    impossible_ = Error{
        why.code, fmt::format("the drill {} could not be carried out: {}", drill.name, why.detail)};
    if (options_.drill == kAll) console_.note("pawl: " + printable(impossible_->detail));
    return true;
  }

  // One page for each drill.
  bool save(const drill::Record& record) {
    const std::string path = report_path(options_, record.drill);
    std::ofstream file(path, std::ios::trunc);
    file << drill::html(record);
    if (file.flush()) {
      if (!console_.json()) console_.note("report: " + path);
      return true;
    }
    exit_ = console_.fail({Code::kUnavailable, fmt::format("the report {} could not be written: {}",
                                                           path, std::strerror(errno))},
                          kExitOutput);
    return false;
  }

  Console& console_;
  const DrillArguments& options_;
  StopSignals signals_;
  Json json_;
  bool passed_ = true;
  std::optional<Error> impossible_;
  int exit_ = kExitOk;
};

int drill_verb(Console& console, DrillArguments& options) {
  if (const auto fine = check(options); !fine) return console.fail(fine.error());
  const std::vector<const Drill*> drills = chosen(options);
  const bool own = !options.resource.empty();
  if (own && drills.size() == 1 && drills.front()->pawld == Whose::kThrowaway)
    return console.fail(usage(
        fmt::format("{} uses a pawld of its own, whose tokens your pawld does not know. It works "
                    "with a scratch resource only: --guard {}",
                    options.drill, options.target.kind)));
  if (const auto there = look(console, options, drills); !there) return console.fail(there.error());
  Scene scene = scratch_scene(options);
  if (own) {
    auto found = own_scene(console, options);
    if (!found) return console.fail(found.error());
    scene = *std::move(found);
    const auto go_on = agreed(console, options, scene);
    if (!go_on) return console.fail(go_on.error());
    if (!*go_on) return kExitNothingDone;
  }
  Session session(console, options);
  for (const Drill* each : drills) {
    // What happens to a throw-away pawld cannot be done to the user's own resource.
    if (!session.play(*each,
                      own && each->pawld == Whose::kThrowaway ? scratch_scene(options) : scene))
      break;
  }
  return session.end();
}

}  // namespace

void add_drill(CommandLine& line) {
  auto options = std::make_shared<DrillArguments>();
  Verb verb = line.verb("drill",
                        "freeze, cut off and kill workers of its own, and see whether your guard "
                        "refuses what they write",
                        Talks::kToPawld);
  verb.choice("DRILL", options->drill, names(), "which; see below");
  verb.text("--guard", "KIND[:RESOURCE]", options->guard,
            (guard::kind_names() +
             ": a scratch resource is made there, and removed; KIND:RESOURCE (postgres:orders): "
             "your own")
                .c_str());
  verb.must_have("--guard");
  verb.text("--guard-dsn,--dsn", "DSN", options->target.dsn,
            "where the database is: a URI or key=value pairs (PAWL_GUARD_DSN; else PGHOST, …, or "
            "~/.my.cnf)");
  verb.text("--file", "PATH", options->target.file, "sqlite: where, the same as --guard-dsn");
  verb.not_both("--file", "--guard-dsn");
  verb.text(
      "--mode", "MODE", options->mode,
      "of the scratch resource: enforce (default), shadow, observe, or none: no guard at all");
  verb.text(
      "--write", "SQL", options->statement,
      "your own resource: the statement of each write (default: nothing is written, only judged)");
  verb.text("--lock", "LOCK", options->lock,
            "which lock the workers take: with your own resource, the lock that the programs that "
            "write to it take "
            "(default: named like the resource, if no other holder can be shut out; else one that "
            "nobody uses)");
  verb.duration("-t,--ttl", options->ttl, "of the leases (default 2s)");
  verb.duration("-w,--wait", options->wait, "how long to wait for the lock at most (default 10s)");
  verb.number("--rounds", options->rounds, "how often to repeat it (default 1)");
  verb.text("--report", "FILE", options->report,
            "write a page that shows what happened, for people; of `all` one for each: "
            "FILE-pause.html, …");
  verb.flag(
      "--yes", options->yes,
      "do not ask before your own resource is used, if pawld knows that its writers take LOCK");
  verb.examples(
      "  pawl drill pause --guard postgres --guard-dsn 'dbname=shop'\n"
      "  pawl drill all --guard sqlite --file shop.db --json\n"
      "  pawl drill partition --guard postgres --mode shadow     what a guard in shadow lets "
      "through\n"
      "  pawl drill pause --guard mariadb --mode none            what happens without one\n"
      "  pawl drill pause --guard postgres:invoices --lock billing/nightly\n"
      "                                                          your own guard, in the mode that "
      "it is in\n"
      "  pawl drill pause --guard postgres --report drill.html   a page to attach to a change "
      "request\n"
      "\n"
      "Workers are processes of its own. They take a lock, write to the resource, and lose the "
      "lock in one "
      "of eight\n"
      "ways, without knowing; then they write with the old token. A guard refuses that.\n"
      "\n"
      "  pause                the holder is frozen until another has written; then it wakes and "
      "writes\n"
      "  partition            the holder is cut off from pawld, but not from the resource\n"
      "  delayed-write        a write is held up on its way until its sender has handed the lock "
      "on\n"
      "  flapping             a network that comes and goes: the lock changes hands again and "
      "again\n"
      "  kill                 the holder and pawld are killed; the holder comes back with its old "
      "token\n"
      "  clock-step           pawld comes back with its clocks two hours ahead, then one hour "
      "back\n"
      "  issuer-restart       pawld is away for a moment, and then for longer than a lease\n"
      "  restore-from-backup  pawld's data is lost, and comes back from a backup that is too old\n"
      "The last four start a pawld of their own, and use a scratch resource.\n"
      "\n"
      "With your own resource the fence rises, and holders of older tokens are shut out. So the "
      "drill takes "
      "the "
      "lock\n"
      "that the programs that write to it take. It refuses to begin when the token that the fence "
      "is at "
      "holds "
      "another\n"
      "lock, and looks again before each advance.\n"
      "\n"
      "Ends with 0 when stale writes were sent and every one was refused, with 1 when one got "
      "through (or "
      "the guard\n"
      "refused the holder), with 64, 69, 75 or 77 when the drill could not be carried out.");
  verb.run([options](Console& console) { return drill_verb(console, *options); });
}

}  // namespace pawl::cli
