// pawl raise: move the token counter forward.
#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

struct RaiseArguments {
  std::string token;
  std::string reason;
};

int raise(Console& console, const RaiseArguments& options) {
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

}  // namespace

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
  verb.run([options](Console& console) { return raise(console, *options); });
}

}  // namespace pawl::cli
