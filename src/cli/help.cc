// pawl help: what `pawl VERB --help` prints.
#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

int help(Console& console, const CommandLine& line, const std::vector<std::string>& verbs) {
  const auto text = line.help_of(verbs);
  if (!text) return console.fail_usage("pawl help", text.error().detail);
  if (!console.json()) return console.data(*text) ? kExitOk : kExitOutput;
  Json json;
  json.object().key("help").string(*text).end();
  return console.data(json) ? kExitOk : kExitOutput;
}

}  // namespace

void add_help(CommandLine& line) {
  auto verbs = std::make_shared<std::vector<std::string>>();
  Verb verb = line.verb("help", "print the help of a verb, or the list of verbs", Talks::kToNobody);
  verb.words("VERB", *verbs, "such as `run`, or `guard install`");
  verb.examples("  pawl help\n  pawl help run\n  pawl help guard install");
  verb.run([verbs, &line](Console& console) { return help(console, line, *verbs); });
}

}  // namespace pawl::cli
