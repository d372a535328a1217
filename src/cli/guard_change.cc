// pawl guard mode, policy, emergency, advance, compact: what the guards refuse, and what they
// remember.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "base/duration.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/guard_verbs.h"
#include "cli/reply.h"
#include "cli/shell_word.h"
#include "guard_contract/parse.h"

namespace pawl::cli {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

Result<std::uint64_t> to_token(const std::string& text) {
  if (const auto token = guard::parse_token(text)) return *token;
  return Error{
      Code::kInvalid,
      fmt::format("\"{}\" is not a token: an integer from 1 to 9007199254740991, in plain digits",
                  printable(text))};
}

// --- mode ----------------------------------------------------------------------------------------

struct ModeOptions {
  GuardTarget target;
  ChangeOptions change;
  guard::ModeChange wanted;
  std::uint64_t percent = kNone;
};

int mode(Console& console, const ModeOptions& options) {
  guard::ModeChange wanted = options.wanted;
  if ((options.percent != kNone) != (wanted.mode == "canary")) {
    return console.fail(
        {Code::kInvalid, "canary needs --percent 1 to 99; other modes do not take --percent"});
  }
  if (options.percent != kNone && (options.percent < 1 || options.percent > 99)) {
    return console.fail({Code::kInvalid, "--percent: 1 to 99"});
  }
  if (options.percent != kNone) wanted.percent = static_cast<int>(options.percent);
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  const auto before = (*opened)->status(wanted.guard);
  if (!before) return console.fail(before.error());
  const std::string name = printable(wanted.guard);
  const guard::Status& now = before->front();
  if (wanted.mode == "enforce" && !now.ready) {
    console.note(fmt::format("{} is not ready to enforce:", name));
    for (const std::string& reason : now.because) console.note("  " + printable(reason));
    if (!options.change.dry_run && !options.change.yes) {
      const auto go =
          confirm(console, "Writes with an old token will be refused.", "Enforce anyway?");
      if (!go) return console.fail(go.error());
      if (!*go) return kExitNothingDone;
    }
  }
  if (const auto done = (*opened)->set_mode(wanted, options.change.rehearse()); !done)
    return console.fail(done.error());
  if (wanted.mode == "enforce" && !now.require_token) {
    console.note(fmt::format(
        "writes without a token are still admitted; to refuse them: {}",
        options.target.command(fmt::format("policy {} {} --require-token on", options.target.kind,
                                           shell_word(wanted.guard)))));
  }
  const std::string from_to = fmt::format("{}: {} -> {}", name, now.mode, wanted.mode);
  return report_change(console, options.change, from_to, "would change " + from_to);
}

// --- policy --------------------------------------------------------------------------------------

struct PolicyOptions {
  GuardTarget target;
  ChangeOptions change;
  std::string guard;
  std::string require_token;
  std::string equal;
  std::uint64_t max_step = kNone;
  std::string bare_token;
  std::string reason;
};

int policy(Console& console, const PolicyOptions& options) {
  guard::PolicyChange wanted{.guard = options.guard, .reason = options.reason};
  if (!options.require_token.empty()) {
    if (options.require_token != "on" && options.require_token != "off") {
      return console.fail({Code::kInvalid, "--require-token: on or off"});
    }
    wanted.require_token = options.require_token == "on";
  }
  if (!options.equal.empty()) wanted.equal = options.equal;
  if (options.max_step != kNone) wanted.max_step = options.max_step;
  if (!options.bare_token.empty()) wanted.bare_token = options.bare_token;
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  if (const auto done = (*opened)->set_policy(wanted, options.change.rehearse()); !done) {
    return console.fail(done.error());
  }
  const std::string name = printable(options.guard);
  return report_change(console, options.change, name + ": policy changed",
                       "would change the policy of " + name);
}

// --- emergency -----------------------------------------------------------------------------------

struct EmergencyOptions {
  GuardTarget target;
  std::string guard;
  std::string reason;
};

int emergency(Console& console, const EmergencyOptions& options) {
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  if (const auto done = (*opened)->emergency(options.guard, options.reason); !done)
    return console.fail(done.error());
  const std::string what = options.guard.empty() ? "every guard" : printable(options.guard);
  return report_change(console, {}, what + " is back in shadow: nothing is refused", "");
}

// --- advance -------------------------------------------------------------------------------------

struct AdvanceOptions {
  GuardTarget target;
  ChangeOptions change;
  std::string resource;
  std::string token;
  Millis wait{5'000};
  bool evict = false;
  bool held = false;
};

// With --held (how `pawl run --guard` asks) it is the environment's, and a success prints nothing.
// The floor: readers share the smallest live token, below which nobody may write; the floor of a
// holder that is alone is its token.
Result<std::uint64_t> token_of(const AdvanceOptions& options) {
  const char* held = std::getenv("PAWL_FLOOR");
  if (held == nullptr) held = std::getenv("PAWL_TOKEN");
  if (!options.held) {
    if (!options.token.empty()) return to_token(options.token);
    return Error{Code::kInvalid, "no token: name it, or use --held inside `pawl run`"};
  }
  if (!options.token.empty()) return Error{Code::kInvalid, "give either TOKEN or --held, not both"};
  if (held == nullptr)
    return Error{Code::kInvalid,
                 "--held: PAWL_FLOOR and PAWL_TOKEN are not set; this is not inside `pawl run`"};
  return to_token(held);
}

// Why the token of a live lease is stale. Where pawld has never granted a token as great as the
// fence, it is pawld's counter that is behind, and no later holder will fare better.
Error explain_stale(Console& console, guard::Administration& guards, const AdvanceOptions& options,
                    const Error& stale) {
  const auto fence = guards.fence(options.resource);
  if (!fence || !*fence) return stale;
  const auto status = console.ask({"STATUS"});
  const auto last = status ? integer_of(*status, "last_token") : std::nullopt;
  if (!last || static_cast<std::uint64_t>(*last) >= **fence) return stale;
  return {Code::kIssuerBehind,
          fmt::format("issuer behind: the fence of {} is {}, and pawld has granted no token above "
                      "{}. Either a token was made up, or pawld lost its store or is another one "
                      "than before. If it is the right pawld, run: pawl raise {} --reason TEXT",
                      options.resource, **fence, *last, **fence)};
}

int rehearse_advance(Console& console, guard::Administration& guards, const AdvanceOptions& options,
                     std::uint64_t token) {
  const auto fence = guards.fence(options.resource);
  if (!fence) return console.fail(fence.error());
  std::vector<std::string> blockers;
  if (guards.can(guard::Task::kBlockers)) {
    auto found = guards.blockers(options.resource);
    if (!found) return console.fail(found.error());
    blockers = *std::move(found);
  }
  if (fence->value_or(0) > token) {
    return console.fail(
        {Code::kStaleToken, fmt::format("token {} is stale: the fence is {}", token, **fence)});
  }
  for (const std::string& blocker : blockers) console.note("would wait for " + printable(blocker));
  return report_change(console, options.change, "",
                       fmt::format("would advance {} from {} to {}", printable(options.resource),
                                   fence->value_or(0), token));
}

int advance(Console& console, const AdvanceOptions& options) {
  const auto token = token_of(options);
  if (!token) return console.fail(token.error());
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  if (options.change.dry_run) return rehearse_advance(console, **opened, options, *token);
  const auto before =
      (*opened)->advance(options.resource, *token, options.wait,
                         options.evict ? guard::Stragglers::kEvict : guard::Stragglers::kSpare);
  if (!before && options.held && before.error().code == Code::kStaleToken)
    return console.fail(explain_stale(console, **opened, options, before.error()), kExitStale);
  if (!before) return console.fail(before.error());
  if (options.held) return kExitOk;
  if (console.json()) {
    Json json;
    json.object().key("resource").string(options.resource);
    json.key("token").number(static_cast<std::int64_t>(*token));
    json.key("before").number(static_cast<std::int64_t>(*before)).end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  return console.data(fmt::format(
             "advanced: {} from {} to {}; no write with a lower token is applied any more\n",
             printable(options.resource), *before, *token))
             ? kExitOk
             : kExitOutput;
}

// --- compact -------------------------------------------------------------------------------------

struct CompactOptions {
  GuardTarget target;
  ChangeOptions change;
  std::string guard;
  std::string below;
};

// What pawld still knows to be alive; below that nobody can come back.
Result<std::uint64_t> oldest_live(Console& console) {
  const auto status = console.ask({"STATUS"});
  if (!status) return status.error();
  if (const auto oldest = integer_of(*status, "oldest_live_token"); oldest && *oldest > 0) {
    return static_cast<std::uint64_t>(*oldest);
  }
  const auto last = integer_of(*status, "last_token");
  return static_cast<std::uint64_t>(last.value_or(0)) + 1;
}

int compact(Console& console, const CompactOptions& options) {
  const auto below = options.below.empty() ? oldest_live(console) : to_token(options.below);
  if (!below) return console.fail(below.error());
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  const std::string what = fmt::format("{} below token {}", printable(options.guard), *below);
  if (!options.change.dry_run && !options.change.yes) {
    const auto go = confirm(
        console,
        fmt::format("Every token of {} becomes stale for all its resources, also those that were "
                    "never written.",
                    what),
        "Compact?");
    if (!go) return console.fail(go.error());
    if (!*go) return kExitNothingDone;
  }
  if (const auto done = (*opened)->compact(options.guard, *below, options.change.rehearse());
      !done) {
    return console.fail(done.error());
  }
  return report_change(console, options.change, "compacted: " + what, "would compact " + what);
}

}  // namespace

void add_guard_mode(CommandLine& line) {
  auto options = std::make_shared<ModeOptions>();
  Verb verb =
      line.verb("guard", "mode", "set how strict a guard is; applies at once to every client",
                Talks::kToNobody);
  options->target.declare(verb);
  verb.required("GUARD", options->wanted.guard, "its name");
  verb.choice("MODE", options->wanted.mode, {"observe", "shadow", "canary", "enforce"},
              "the new mode");
  verb.number("--percent", options->percent,
              "with canary: the percentage of resources to enforce for, always the same ones");
  verb.text("--reason", "TEXT", options->wanted.reason, "reason, for the audit table");
  options->change.declare_dry_run(verb);
  options->change.declare_yes(verb);
  verb.examples(
      "  pawl guard mode postgres orders shadow\n"
      "  pawl guard mode postgres orders canary --percent 10\n"
      "  pawl guard mode postgres orders enforce --reason \"shadow was clean for a week\"");
  verb.run([options](Console& console) { return mode(console, *options); });
}

void add_guard_policy(CommandLine& line) {
  auto options = std::make_shared<PolicyOptions>();
  Verb verb =
      line.verb("guard", "policy", "set what a guard requires of a write", Talks::kToNobody);
  options->target.declare(verb);
  verb.required("GUARD", options->guard, "its name");
  verb.text("--require-token", "on|off", options->require_token,
            "refuse writes without a token, too");
  verb.text(
      "--equal", "accept|once|refuse", options->equal,
      "a token that was used before: admitted (accept, the default), only with an operation number "
      "(once), stale (refuse)");
  verb.number("--max-step", options->max_step,
              "a token further ahead than this is refused as forged or corrupt");
  verb.text("--bare-token", "accept|refuse", options->bare_token,
            "whether the setting pawl.token, which names no guard, is accepted; refuse it when "
            "clients use a "
            "pooler");
  verb.text("--reason", "TEXT", options->reason, "reason, for the audit table");
  options->change.declare_dry_run(verb);
  verb.examples("  pawl guard policy postgres orders --require-token on");
  verb.run([options](Console& console) { return policy(console, *options); });
}

void add_guard_emergency(CommandLine& line) {
  auto options = std::make_shared<EmergencyOptions>();
  Verb verb =
      line.verb("guard", "emergency",
                "switch back to shadow at once, without waiting for open transactions; audited",
                Talks::kToNobody);
  options->target.declare(verb);
  verb.optional("GUARD", options->guard, "one of them (default: all)");
  verb.text("--reason", "TEXT", options->reason, "reason, for the audit table");
  verb.must_have("--reason");
  verb.examples("  pawl guard emergency postgres --reason \"checkout is down, looking\"");
  verb.run([options](Console& console) { return emergency(console, *options); });
}

void add_guard_advance(CommandLine& line) {
  auto options = std::make_shared<AdvanceOptions>();
  Verb verb =
      line.verb("guard", "advance",
                "raise a fence: no write with a lower token is applied any more", Talks::kToPawld);
  options->target.declare(verb);
  verb.required("RESOURCE", options->resource, "GUARD or GUARD:KEY");
  verb.optional("TOKEN", options->token, "the new fence");
  verb.flag("--held", options->held,
            "the token of the `pawl run` around this (PAWL_FLOOR); prints nothing");
  options->target.declare_option_of_run(verb);
  verb.duration("-w,--wait", options->wait, "how long to wait for older transactions (default 5s)");
  verb.flag("--evict", options->evict,
            "end older transactions that are still open after that wait");
  options->change.declare_dry_run(verb);
  verb.examples(
      "  pawl guard advance postgres orders --held     first thing in a job under `pawl run`; so "
      "does `pawl "
      "run --guard`\n"
      "  pawl guard advance postgres orders 34 --dry-run\n"
      "Exit codes: 75 an older transaction is still open (old holders may still write), 121 the "
      "token is "
      "stale.\n"
      "With --held pawld is asked whether it ever granted a token as great as the fence; if not, "
      "the\n"
      "message says so and names the command that mends it.");
  verb.run([options](Console& console) { return advance(console, *options); });
}

void add_guard_compact(CommandLine& line) {
  auto options = std::make_shared<CompactOptions>();
  Verb verb =
      line.verb("guard", "compact", "forget what is kept of deleted rows and finished operations",
                Talks::kToPawld);
  options->target.declare(verb);
  verb.required("GUARD", options->guard, "its name");
  verb.text("--below", "TOKEN", options->below,
            "tokens below are stale for ever (default: pawld's oldest live token)");
  options->change.declare_dry_run(verb);
  options->change.declare_yes(verb);
  verb.examples("  pawl guard compact postgres orders --dry-run");
  verb.run([options](Console& console) { return compact(console, *options); });
}

}  // namespace pawl::cli
