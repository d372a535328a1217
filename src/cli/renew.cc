// pawl renew: extend a lease.
#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/lease_argument.h"
#include "cli/verbs.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

int renew(Console& console, const std::string& argument) {
  const auto lease = lease_from(argument);
  if (!lease) return console.fail(lease.error());
  const auto renewed = console.pawld().renew({.lease = *lease});
  if (!renewed) return console.fail(renewed.error());
  if (console.json()) {
    Json json;
    json.object().key("expires_in_ms").number(renewed->expires_in.count());
    json.key("deadline_boottime_ns").number(renewed->deadline.time_since_epoch().count()).end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  const auto left = std::chrono::floor<Millis>(renewed->deadline - client::boot_now());
  console.data(fmt::format("renewed: yours for {} from now\n", to_text(left)));
  return kExitOk;
}

}  // namespace

void add_renew(CommandLine& line) {
  auto lease = std::make_shared<std::string>();
  Verb verb = line.verb("renew", "extend a lease by its TTL", Talks::kToPawld);
  verb.optional("LEASE", *lease, kLeaseHelp);
  verb.examples(
      "  pawl renew 5f0c1b7a9d3e4f60812233445566778f\n"
      "  PAWL_LEASE=$lease pawl renew                    not in the command line\n"
      "  echo $lease | pawl renew -\n"
      "Ends with 122 when the lease is over: stop the work it covered.");
  verb.run([lease](Console& console) { return renew(console, *lease); });
}

}  // namespace pawl::cli
