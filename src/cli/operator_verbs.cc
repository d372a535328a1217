// pawl break, pawl raise, pawl backup, pawl handover: what operators do.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

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

// --- handover ------------------------------------------------------------------------------------

constexpr std::chrono::milliseconds kLookEvery{50};

struct HandoverArguments {
  Millis timeout = std::chrono::seconds(30);
};

int report_handover(Console& console, const std::string& from, const wire::Value& status,
                    Millis took) {
  const std::string active = text_of(status, "active");
  if (console.json()) {
    Json json;
    json.object().key("from").string(from).key("active").string(active);
    json.key("epoch").number(integer_of(status, "epoch").value_or(0));
    json.key("took_ms").number(took.count()).end();
    if (!console.data(json)) return kExitOutput;
  } else if (!console.data(fmt::format("handed over: {} is active, epoch {}, after {} ms\n", active,
                                       text_of(status, "epoch"), took.count()))) {
    return kExitOutput;
  }
  if (active != from) return kExitOk;
  console.note("pawl: nobody else took the role, so the same pawld has it again");
  return kExitNothingDone;
}

// The old active one, or whichever answers, knows the new one as soon as it has written to etcd.
int hand_over(Console& console, const HandoverArguments& options) {
  const auto began = std::chrono::steady_clock::now();
  const auto since = [&] {
    return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - began);
  };
  const auto reply = console.ask({"HANDOVER"}, client::CommandCall::Repeat::kForbidden);
  if (!reply) return console.fail(reply.error());
  const auto epoch = integer_of(*reply, "epoch").value_or(0);
  const std::string from = text_of(*reply, "active");
  console.progress("waiting for another pawld to take over …");
  while (since() < options.timeout) {
    const auto status = console.ask({"STATUS"});
    if (!status) return console.fail(status.error());
    if (integer_of(*status, "epoch").value_or(0) > epoch && !text_of(*status, "active").empty())
      return report_handover(console, from, *status, since());
    std::this_thread::sleep_for(kLookEvery);
  }
  return console.fail(
      {Code::kUnavailable,
       fmt::format("{} gives its role away, but no pawld has taken it within {} ms; look at `pawl "
                   "status` of each of them, and at etcd",
                   from, options.timeout.count())});
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

void add_handover(CommandLine& line) {
  auto options = std::make_shared<HandoverArguments>();
  Verb verb = line.verb(
      "handover", "give the role of the active pawld to one that stands by, before maintenance",
      Talks::kToPawld);
  verb.duration("--timeout", options->timeout, "how long to wait until another one is active");
  verb.examples(
      "  pawl handover                           then stop, upgrade and start the old one\n"
      "  pawl handover --json | jq -r .active    the one that serves now\n"
      "Leases stay, and clients follow by themselves. It needs the role admin. Stopping the "
      "active\n"
      "pawld (SIGTERM, systemctl stop) does the same.\n"
      "Exits with 1 when nobody else took the role, 69 when nobody stands by, or none has it yet.");
  verb.run([options](Console& console) { return hand_over(console, *options); });
}

}  // namespace pawl::cli
