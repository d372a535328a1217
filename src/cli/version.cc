// pawl version: which pawl this is.
#include <fmt/format.h>

#include "base/version.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

int version(Console& console) {
  if (!console.json())
    return console.data(fmt::format("pawl {}\n", kVersion)) ? kExitOk : kExitOutput;
  Json json;
  json.object().key("version").string(kVersion).end();
  return console.data(json) ? kExitOk : kExitOutput;
}

}  // namespace

void add_version(CommandLine& line) {
  Verb verb = line.verb("version", "print the version of this pawl", Talks::kToNobody);
  verb.examples("  pawl version\n  pawl status             the version of the pawld it talks to");
  verb.run([](Console& console) { return version(console); });
}

}  // namespace pawl::cli
