// pawl renew, pawl release: extend or end a lease that `pawl acquire` has printed.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "base/duration.h"
#include "base/hex.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

constexpr const char* kLeaseHelp =
    "as `pawl acquire` printed it; `-` reads it from stdin; the default is PAWL_LEASE. "
    "(A lease is a secret, and other users of this machine can read command lines.)";

std::string read_line() {
  std::string line;
  std::getline(std::cin, line);
  const auto last = line.find_last_not_of(" \t\r");
  line.resize(last == std::string::npos ? 0 : last + 1);
  return line;
}

// The lease from the argument, from stdin ("-"), or from PAWL_LEASE when there is no argument.
Result<LeaseId> lease_from(const std::string& argument) {
  std::string digits = argument;
  if (argument == "-") digits = read_line();
  if (argument.empty()) {
    const char* environment = std::getenv("PAWL_LEASE");
    if (environment == nullptr || *environment == '\0') {
      return Error{Code::kInvalid,
                   "no lease: pass it, use `-` to read it from stdin, or set PAWL_LEASE."};
    }
    digits = environment;
  }
  if (const auto lease = lease_from_hex(digits)) return *lease;
  // The argument is not repeated: it may be a mistyped secret.
  return Error{Code::kInvalid,
               "a lease is 32 lowercase hex digits, as `pawl acquire` printed them"};
}

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
    console.note("pawl: the lease had ended before; others may have held its locks since");
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
      "Exits with 122 when the lease is over: stop the work that it covered.");
  verb.run([lease](Console& console) { return renew(console, *lease); });
}

void add_release(CommandLine& line) {
  auto lease = std::make_shared<std::string>();
  Verb verb = line.verb("release", "end a lease and release its locks", Talks::kToPawld);
  verb.optional("LEASE", *lease, kLeaseHelp);
  verb.examples(
      "  pawl release 5f0c1b7a9d3e4f60812233445566778f\n"
      "  PAWL_LEASE=$lease pawl release                  not in the command line\n"
      "Exits with 0 also when the lease was already over (and says so): it can be repeated "
      "safely.");
  verb.run([lease](Console& console) { return release(console, *lease); });
}

}  // namespace pawl::cli
