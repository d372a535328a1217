// pawl status, pawl version: pawld and this program.
#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

int status(Console& console) {
  const auto reply = console.ask({"STATUS"});
  if (!reply) return console.fail(reply.error());
  if (console.json()) {
    Json json;
    json.value(*reply);
    return console.data(json) ? kExitOk : kExitOutput;
  }
  std::string out;
  for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
    const std::string key = printable(reply->items[i].text);
    const bool span = key.ends_with("_ms");
    // Shown only while it lasts: nothing is granted until then.
    if (key == "restoring_ms" && reply->items[i + 1].integer == 0) continue;
    out += fmt::format("{:<18} {}\n", (span ? key.substr(0, key.size() - 3) : key) + ":",
                       span ? duration_of(*reply, key) : text_of(*reply, key));
  }
  return console.data(out) ? kExitOk : kExitOutput;
}

}  // namespace

int print_version(Console& console) {
  if (!console.json())
    return console.data(fmt::format("pawl {}\n", kVersion)) ? kExitOk : kExitOutput;
  Json json;
  json.object().key("version").string(kVersion).end();
  return console.data(json) ? kExitOk : kExitOutput;
}

void add_status(CommandLine& line) {
  Verb verb = line.verb("status", "show the state of pawld: version, role, tokens, counts",
                        Talks::kToPawld);
  verb.examples("  pawl status\n  pawl status --json | jq .last_token");
  verb.run([](Console& console) { return status(console); });
}

void add_version(CommandLine& line) {
  Verb verb = line.verb("version", "print the version of this pawl", Talks::kToNobody);
  verb.examples("  pawl version\n  pawl status             the version of the pawld it talks to");
  verb.run([](Console& console) { return print_version(console); });
}

}  // namespace pawl::cli
