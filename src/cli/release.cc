// pawl release: end a lease.
#include <memory>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/lease_argument.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

int release(Console& console, const std::string& argument) {
  const auto lease = lease_from(argument);
  if (!lease) return console.fail(lease.error());
  const auto released = console.pawld().release({.lease = *lease});
  if (!released) return console.fail(released.error());
  if (console.json()) {
    Json json;
    json.object().key("released").boolean(released->was_live).end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  console.data(released->was_live ? "released\n" : "already over\n");
  if (!released->was_live)
    console.note("pawl: the lease had ended before; someone else may have held its locks since");
  return kExitOk;
}

}  // namespace

void add_release(CommandLine& line) {
  auto lease = std::make_shared<std::string>();
  Verb verb = line.verb("release", "end a lease and release its locks", Talks::kToPawld);
  verb.optional("LEASE", *lease, kLeaseHelp);
  verb.examples(
      "  pawl release 5f0c1b7a9d3e4f60812233445566778f\n"
      "  PAWL_LEASE=$lease pawl release                  not in the command line\n"
      "Ends with 0 also when the lease was already over (it says so), so that it can be repeated "
      "safely.");
  verb.run([lease](Console& console) { return release(console, *lease); });
}

}  // namespace pawl::cli
