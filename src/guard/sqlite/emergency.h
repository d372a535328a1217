// The emergency switch: a line in a file beside the database, FILE-pawl-emergency.
//
// SQLite has one writer at a time, and a stuck writer is what an emergency is often about. So the
// switch cannot be in the database. It is read only before a refusal. A line names
// the installation, the guard and the generation of its mode: the next change of mode, in its own
// transaction, turns it off.
//
//   INSTALLATION GUARD GENERATION AT LOGIN APPLICATION REASON…      AT: milliseconds since 1970
//
// Lines are never removed, so one may be appended without a lock. The audit in the database gets it
// at once, or, where another connection is writing, with the next `status` or change of mode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/sqlite/store.h"

namespace pawl::sqlite {

struct Emergency {
  std::int64_t installation = 0;
  std::int64_t guard = 0;
  std::int64_t generation = 0;

  bool operator==(const Emergency&) const = default;
};

// The account that turned the switch on, and why.
struct Switched {
  Emergency emergency;
  std::int64_t at_ms = 0;
  std::string login;
  std::string application;
  std::string reason;
};

// Whether the switch is on, and since when. `path`: of the database; empty (in memory): there can
// be none.
[[nodiscard]] std::optional<Switched> find_switched(const std::string& path,
                                                    const Emergency& emergency);
// Durably, without a lock. Throws a Fault where the file cannot be written.
void turn_on(const std::string& path, const std::vector<Emergency>& emergencies,
             const std::string& reason);
// Removes the lines of that guard, whatever their generation.
void turn_off(const std::string& path, std::int64_t installation, std::int64_t guard);
// Copies the switches into the audit of that file, each once. In a transaction of the caller's.
void audit_emergencies(Store& store);
// The same in one of its own, if there is something to copy and no other connection writes now.
void audit_late_emergencies(Store& store) noexcept;
// Removes the file, when the guard is uninstalled.
void forget_emergencies(const std::string& path);

}  // namespace pawl::sqlite
