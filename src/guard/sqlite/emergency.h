// The emergency switch: a line in a file beside the database, FILE-pawl-emergency.
//
// SQLite has one writer at a time, and a stuck writer is what an emergency is often about. So the switch cannot be in
// the database. It is looked at only by who is about to refuse. A line names the installation, the guard and the
// generation of its mode: the next change of mode, in its own transaction, turns it off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::sqlite {

struct Emergency {
  std::int64_t installation = 0;
  std::int64_t guard = 0;
  std::int64_t generation = 0;

  bool operator==(const Emergency&) const = default;
};

// `path`: of the database; empty (in memory): there can be none.
[[nodiscard]] bool is_on(const std::string& path, const Emergency& emergency);
// Durably, without a lock. Throws a Fault where the file cannot be written.
void turn_on(const std::string& path, const std::vector<Emergency>& emergencies);
// Of an installation that is taken out.
void forget_emergencies(const std::string& path);

}  // namespace pawl::sqlite
