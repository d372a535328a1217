// pawl break: end someone else's lease, by the token the operator saw.
#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/confirm.h"
#include "cli/exit_codes.h"
#include "cli/utf8.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

struct BreakArguments {
  std::string lock;
  std::uint64_t token = 0;
  std::string reason;
  bool now = false;
  bool yes = false;
};

// Whether to go on with --now.
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
  // Not repeated after a lost reply: the second answer could be 0 although the first one did it.
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
      "Ends with 1 when that token does not hold the lock.");
  verb.run([options](Console& console) { return break_lease(console, *options); });
}

}  // namespace pawl::cli
