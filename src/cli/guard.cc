// pawl guard: the check inside a resource that refuses old tokens.
#include "cli/command_line.h"
#include "cli/guard_verbs.h"
#include "cli/verbs.h"

namespace pawl::cli {

void add_guard(CommandLine& line) {
  line.group(
      "guard", "manage guards: the checks inside a database that refuse old tokens",
      "Examples:\n"
      "  pawl guard install postgres --dsn DSN        once per database; mariadb has the same "
      "verbs\n"
      "  pawl guard protect postgres orders           observe: who writes, with which tokens, or "
      "without\n"
      "  pawl guard mode postgres orders shadow       judge and count, let everything through\n"
      "  pawl guard status postgres                   ready to enforce? not yet, because …\n"
      "  pawl guard mode postgres orders enforce      refuse stale tokens\n"
      "  pawl guard policy postgres orders --require-token on    and writes without one\n"
      "  pawl guard emergency postgres --reason …     something went wrong: back to shadow at "
      "once");
  add_guard_install(line);
  add_guard_protect(line);
  add_guard_unprotect(line);
  add_guard_drop(line);
  add_guard_check(line);
  add_guard_status(line);
  add_guard_mode(line);
  add_guard_policy(line);
  add_guard_emergency(line);
  add_guard_advance(line);
  add_guard_max(line);
  add_guard_compact(line);
  add_guard_put(line);
  add_guard_get(line);
  add_guard_gc(line);
  add_guard_conformance(line);
  add_guard_uninstall(line);
}

}  // namespace pawl::cli
