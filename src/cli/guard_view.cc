// pawl guard check, status, max: read-only views of the guards.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/guard_verbs.h"
#include "cli/reply.h"
#include "cli/shell_word.h"

namespace pawl::cli {
namespace {

struct GuardViewArguments {
  GuardTarget target;
  std::string name;  // a guard, or a resource
};

// --- check ---------------------------------------------------------------------------------------

void write(Json& json, const guard::Problem& problem) {
  json.object().key("severity").string(problem.severity).key("guard").string(problem.guard);
  json.key("object").string(problem.object).key("problem").string(problem.problem);
  json.key("fix").string(problem.fix).end();
}

void write_strength(Json& json, const GuardStrength& strength) {
  json.key("strength").string(to_text(strength.strength));
  json.key("strength_because").string(strength.because);
}

// It refuses stale tokens, and takes a write without any.
bool admits_tokenless(const guard::Status& status) {
  return status.mode == "enforce" && !status.require_token && !status.tables.empty();
}

// What is not wrong, and yet should be known.
std::string to_notes(const GuardViewArguments& options, const guard::Status& status) {
  std::string out;
  const std::string name = printable(status.guard);
  if (status.strength.strength == Strength::kBestEffort)
    out += fmt::format("note: {} is best effort: {}\n", name, printable(status.strength.because));
  if (admits_tokenless(status))
    out += fmt::format(
        "note: {} admits writes without a token; to refuse them: {}\n", name,
        options.target.command(fmt::format("policy {} {} --require-token on", options.target.kind,
                                           shell_word(status.guard))));
  return out;
}

int check(Console& console, const GuardViewArguments& options) {
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  const auto problems = (*opened)->problems();
  if (!problems) return console.fail(problems.error());
  // A user that may only look for problems gets no notes about modes and policies.
  std::vector<guard::Status> guards;
  if (auto status = (*opened)->status("")) {
    guards = *std::move(status);
  } else if (status.error().code != Code::kDenied) {
    return console.fail(status.error());
  }
  for (guard::Status& guard : guards) guard::weaken_by_problems(guard, problems);
  const auto installed = (*opened)->installed();
  if (!installed) return console.fail(installed.error());
  const std::string fast_path = *installed ? (*installed)->fast_path : "";
  std::string out;
  if (console.json()) {
    Json json;
    json.object().key("healthy").boolean(problems->empty());
    if (!fast_path.empty()) json.key("fast_path").string(fast_path);
    json.key("problems").array();
    for (const guard::Problem& problem : *problems) write(json, problem);
    json.end().key("guards").array();
    for (const guard::Status& guard : guards) {
      json.object().key("guard").string(guard.guard);
      write_strength(json, guard.strength);
      json.key("admits_tokenless").boolean(admits_tokenless(guard)).end();
    }
    json.end().end();
    out = json.text() + "\n";
  } else {
    for (const guard::Problem& problem : *problems) {
      out += fmt::format("{}: {}: {}\n  fix: {}\n", console.paint(Paint::kBad, problem.severity),
                         printable(problem.object), printable(problem.problem),
                         printable(problem.fix));
    }
    if (problems->empty())
      out = guards.empty()
                ? "nothing is under guard here; see pawl guard protect\n"
                : console.paint(Paint::kGood, "healthy") + ": every table under guard is checked\n";
    for (const guard::Status& guard : guards) out += to_notes(options, guard);
    if (!fast_path.empty()) out += fmt::format("fast path: {}\n", fast_path);
  }
  if (!console.data(out)) return kExitOutput;
  return problems->empty() ? kExitOk : kExitNothingDone;
}

// --- status --------------------------------------------------------------------------------------

void write(Json& json, const guard::Status& status) {
  const auto number = [&](const char* key, std::uint64_t value) {
    json.key(key).number(static_cast<std::int64_t>(value));
  };
  json.object().key("guard").string(status.guard).key("kind").string(status.kind);
  write_strength(json, status.strength);
  json.key("tables").array();
  for (const std::string& table : status.tables) json.string(table);
  json.end().key("mode").string(status.mode).key("percent");
  status.percent ? json.number(*status.percent) : json.null();
  json.key("require_token").boolean(status.require_token).key("equal").string(status.equal);
  number("max_step", status.max_step);
  json.key("fence");
  status.fence ? json.number(static_cast<std::int64_t>(*status.fence)) : json.null();
  number("floor", status.floor);
  number("replayed", status.replayed);
  number("stale", status.stale);
  number("missing", status.missing);
  number("ahead", status.ahead);
  number("malformed", status.malformed);
  number("would_refuse", status.would_refuse);
  json.key("ready").boolean(status.ready).key("because").array();
  for (const std::string& reason : status.because) json.string(reason);
  json.end().end();
}

void write(Json& json, const guard::Sighting& seen) {
  json.object()
      .key("guard")
      .string(seen.guard)
      .key("login")
      .string(seen.login)
      .key("role")
      .string(seen.role);
  json.key("application").string(seen.application).key("statement").string(seen.statement);
  json.key("count")
      .number(static_cast<std::int64_t>(seen.count))
      .key("last_seen")
      .string(seen.last_seen)
      .end();
}

std::string mode_of(const guard::Status& status) {
  std::string mode = status.mode;
  if (status.percent) mode += fmt::format(" {} %", *status.percent);
  if (status.require_token) mode += " + require_token";
  return mode;
}

std::string to_lines(Console& console, const guard::Status& status) {
  const bool enforcing = status.mode == "enforce";
  std::string verdict = enforcing      ? console.paint(Paint::kGood, "enforcing")
                        : status.ready ? console.paint(Paint::kGood, "ready to enforce")
                                       : console.paint(Paint::kBad, "not yet");
  if (enforcing && !status.require_token)
    verdict += ", but writes without a token are admitted (require_token is off)";
  std::string out =
      fmt::format("{}  {}, {}\n", console.paint(Paint::kStrong, printable(status.guard)),
                  status.kind, mode_of(status));
  out +=
      fmt::format("  tables   {}\n", printable(fmt::format("{}", fmt::join(status.tables, ", "))));
  const bool only_then = !enforcing && status.strength.strength == Strength::kFenced;
  out += fmt::format(
      "  strength {}{}{}\n", to_text(status.strength.strength),
      status.strength.because.empty() ? "" : ": " + printable(status.strength.because),
      only_then ? fmt::format(" under enforce; {} refuses nothing, or not everything", status.mode)
                : "");
  if (status.fence) out += fmt::format("  fence    {}\n", *status.fence);
  out += fmt::format(
      "  judged   stale {}, missing {}, ahead {}, malformed {}, replayed {}{}\n", status.stale,
      status.missing, status.ahead, status.malformed, status.replayed,
      enforcing ? ""
                : fmt::format("; enforce would have refused {} of these", status.would_refuse));
  out += fmt::format("  verdict  {}\n", verdict);
  for (const std::string& reason : status.because)
    out += fmt::format("           {} {}\n", enforcing ? "note:" : "because", printable(reason));
  return out;
}

std::string to_table(const std::vector<guard::Sighting>& sightings) {
  Table table({"WITHOUT A TOKEN", "LOGIN", "APPLICATION", "TIMES", "LAST", "STATEMENT"});
  for (const guard::Sighting& seen : sightings) {
    table.row({printable(seen.guard), printable(seen.login), printable(seen.application),
               std::to_string(seen.count), seen.last_seen, printable(seen.statement)});
  }
  return table.empty() ? "" : "\n" + table.text(true);
}

int status(Console& console, const GuardViewArguments& options) {
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  auto guards = (*opened)->status(options.name);
  if (!guards) return console.fail(guards.error());
  const auto problems = (*opened)->problems();
  for (guard::Status& guard : *guards) guard::weaken_by_problems(guard, problems);
  std::vector<guard::Sighting> sightings;
  if ((*opened)->can(guard::Task::kSightings)) {
    auto seen = (*opened)->sightings(options.name);
    if (!seen) return console.fail(seen.error());
    sightings = *std::move(seen);
  }
  std::string out;
  if (console.json()) {
    Json json;
    json.object().key("guards").array();
    for (const guard::Status& guard : *guards) write(json, guard);
    json.end().key("tokenless_writers").array();
    for (const guard::Sighting& seen : sightings) write(json, seen);
    json.end().end();
    out = json.text() + "\n";
  } else {
    for (const guard::Status& guard : *guards) out += to_lines(console, guard);
    out += to_table(sightings);
    if (guards->empty()) console.note("no table is guarded yet; see pawl guard protect");
  }
  return console.data(out) ? kExitOk : kExitOutput;
}

// --- max -----------------------------------------------------------------------------------------

int max(Console& console, const GuardViewArguments& options) {
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  const auto fence = (*opened)->fence(options.name);
  if (!fence) return console.fail(fence.error());
  if (console.json()) {
    Json json;
    json.object().key("resource").string(options.name).key("max");
    *fence ? json.number(static_cast<std::int64_t>(**fence)) : json.null();
    json.end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  if (!*fence) console.note("no token has been used yet");
  return console.data(*fence ? fmt::format("{}\n", **fence) : "") ? kExitOk : kExitOutput;
}

}  // namespace

void add_guard_check(CommandLine& line) {
  auto options = std::make_shared<GuardViewArguments>();
  Verb verb =
      line.verb("guard", "check",
                "find what weakens the guards: disabled triggers, partitions without one, …",
                Talks::kToNobody);
  options->target.declare(verb);
  verb.examples(
      "  pawl guard check postgres\nEnds with 0 when all is well, with 1 when something was "
      "found.");
  verb.run([options](Console& console) { return check(console, *options); });
}

void add_guard_status(CommandLine& line) {
  auto options = std::make_shared<GuardViewArguments>();
  Verb verb = line.verb("guard", "status",
                        "show modes and verdicts, who writes without a token, and whether a guard "
                        "is ready to enforce",
                        Talks::kToNobody);
  options->target.declare(verb);
  verb.optional("GUARD", options->name, "one of them (default: all)");
  verb.examples(
      "  pawl guard status postgres\n  pawl guard status postgres orders --json | jq "
      "'.guards[0].ready'");
  verb.run([options](Console& console) { return status(console, *options); });
}

void add_guard_max(CommandLine& line) {
  auto options = std::make_shared<GuardViewArguments>();
  Verb verb =
      line.verb("guard", "max", "print the fence of a resource: the greatest token used on it",
                Talks::kToNobody);
  options->target.declare(verb);
  verb.required("RESOURCE", options->name, "GUARD or GUARD:KEY");
  verb.examples("  pawl guard max postgres orders");
  verb.run([options](Console& console) { return max(console, *options); });
}

}  // namespace pawl::cli
