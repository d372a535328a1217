// pawl break, pawl raise, pawl backup: what operators do.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

// --- break ---------------------------------------------------------------------------------------

struct BreakArguments {
  std::string lock;
  std::uint64_t token = 0;
  std::string reason;
  bool now = false;
  bool yes = false;
};

// Whether to continue with --now.
Result<bool> confirmed(Console& console, const BreakArguments& options) {
  if (!options.now || options.yes) return true;
  return confirm(
      console,
      fmt::format("{} passes on at once, while the holder of token {} may still be working.\n"
                  "Only resources whose guards check tokens are protected then. Without --now it "
                  "passes on\nwhen the lease has run out, which is safe everywhere.",
                  printable(options.lock), options.token),
      "Pass it on now?");
}

int break_lease(Console& console, const BreakArguments& options) {
  const auto go = confirmed(console, options);
  if (!go) return console.fail(go.error());
  if (!*go) {
    console.note("pawl: nothing was broken");
    return kExitNothingDone;
  }
  std::vector<std::string> words{"BREAK", options.lock, "TOKEN", std::to_string(options.token)};
  if (options.now) words.emplace_back("NOW");
  words.insert(words.end(), {"REASON", options.reason});
  // Not repeated after a lost reply: the second answer could be 0 although the first took effect.
  const auto reply = console.ask(words, client::CommandCall::Repeat::kForbidden);
  if (!reply) return console.fail(reply.error());
  const bool broken = reply->as_integer().value_or(0) == 1;
  if (console.json()) {
    Json json;
    json.object().key("broken").boolean(broken).end();
    console.data(json);
  } else if (broken) {
    console.data(options.now ? "broken: the lock has passed on\n"
                             : "broken: it cannot be renewed any more\n");
    if (!options.now)
      console.note("The lock passes on when the lease has run out; `pawl show` shows when.");
  }
  if (broken) return kExitOk;
  console.note(
      fmt::format("pawl: token {} does not hold {} (any more). `pawl show` shows which one does.",
                  options.token, printable(options.lock)));
  return kExitNothingDone;
}

// --- raise ---------------------------------------------------------------------------------------

struct RaiseArguments {
  std::string token;
  std::string reason;
};

int raise_counter(Console& console, const RaiseArguments& options) {
  const auto reply = console.ask({"RAISE", options.token, "REASON", options.reason},
                                 client::CommandCall::Repeat::kForbidden);
  if (!reply) return console.fail(reply.error());
  const std::int64_t last = reply->as_integer().value_or(0);
  if (console.json()) {
    Json json;
    json.object().key("last_token").number(last).end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  return console.data(fmt::format("raised: the next token is greater than {}\n", last))
             ? kExitOk
             : kExitOutput;
}

// --- backup --------------------------------------------------------------------------------------

// A large store on a slow disk takes its time; a user can interrupt it.
constexpr std::chrono::hours kBackupTimeout{24};

struct BackupArguments {
  std::string directory;
};

int backup(Console& console, const BackupArguments& options) {
  if (!options.directory.starts_with('/')) {
    return console.fail(
        Error{Code::kInvalid,
              fmt::format("\"{}\": DIR must be an absolute path on the machine of pawld",
                          options.directory)},
        kExitUsage);
  }
  console.progress("pawld is copying its store …");
  console.set_timeout(kBackupTimeout);
  const auto reply =
      console.ask({"BACKUP", options.directory}, client::CommandCall::Repeat::kForbidden);
  console.end_progress();
  if (!reply) return console.fail(reply.error());
  if (console.json()) {
    Json json;
    json.value(*reply);
    return console.data(json) ? kExitOk : kExitOutput;
  }
  const std::string text =
      fmt::format("{}: {} records in {} files, {} bytes, read back; last token {}\n",
                  text_of(*reply, "dir"), text_of(*reply, "records"), text_of(*reply, "files"),
                  text_of(*reply, "bytes"), text_of(*reply, "last_token"));
  return console.data(text) ? kExitOk : kExitOutput;
}

}  // namespace

void add_break(CommandLine& line) {
  auto options = std::make_shared<BreakArguments>();
  Verb verb = line.verb("break", "end someone else's lease", Talks::kToPawld);
  verb.required("LOCK", options->lock, "a lock of the lease");
  verb.number("--token", options->token, "the token that holds it, as `pawl show` printed it");
  verb.text("--reason", "TEXT", options->reason, "why; kept with the event");
  verb.flag("--now", options->now,
            "pass the lock on at once: from then on only guards protect the resource");
  verb.flag("--yes", options->yes, "do not ask");
  verb.must_have("--token");
  verb.must_have("--reason");
  verb.examples(
      "  pawl break reports/nightly --token 34 --reason \"host is gone\"\n"
      "  pawl break reports/nightly --token 34 --reason \"host is gone\" --now --yes\n"
      "By default the lease cannot be renewed from now on, and its locks pass on when it has run "
      "out.\n"
      "Exits with 1 when that token does not hold the lock.");
  verb.run([options](Console& console) { return break_lease(console, *options); });
}

void add_raise(CommandLine& line) {
  auto options = std::make_shared<RaiseArguments>();
  Verb verb = line.verb(
      "raise",
      "move the token counter forward, when a guard has seen greater tokens than pawld has granted",
      Talks::kToPawld);
  verb.required("TOKEN", options->token, "every later grant gets a greater one");
  verb.text("--reason", "TEXT", options->reason, "why; kept with the event");
  verb.must_have("--reason");
  verb.examples("  pawl raise 5000 --reason \"the store was restored from a disk snapshot\"");
  verb.run([options](Console& console) { return raise_counter(console, *options); });
}

void add_backup(CommandLine& line) {
  auto options = std::make_shared<BackupArguments>();
  Verb verb = line.verb("backup", "copy all durable data into a new directory while pawld runs",
                        Talks::kToPawld);
  verb.required("DIR", options->directory,
                "absolute path on the machine of pawld; it must not exist, its parent must");
  verb.examples(
      "  pawl backup /var/backups/pawl/$(date -u +%Y-%m-%dT%H%M%SZ)\n"
      "  pawld verify --data /var/backups/pawl/2026-11-16T031700Z\n"
      "  pawld restore --from /var/backups/pawl/2026-11-16T031700Z --data /var/lib/pawl\n"
      "It needs the role backup or admin. The package contains a timer: pawl-backup.timer.");
  verb.run([options](Console& console) { return backup(console, *options); });
}

}  // namespace pawl::cli
