// What owners do with a guard in main: install, protect, modes and policies. Each call is a
// transaction of its own, or part of the one that is open. Whatever fails is thrown as a Fault, and
// nothing has changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/administration.h"
#include "guard/sqlite/session.h"

namespace pawl::sqlite {

[[nodiscard]] std::string_view install_script();
[[nodiscard]] std::optional<guard::Installation> installed(sqlite3* db);
void install(sqlite3* db);
void uninstall(Session& session);

// Keys other than a column are expressions. The guard's name.
std::string protect(Session& session, const guard::Protection& wanted);
void unprotect(Session& session, const std::string& table);
// Without a table: for what pawl_admit() protects.
void create_guard(Session& session, const std::string& name, bool keyed);
void drop_guard(Session& session, const std::string& name);

void set_mode(Session& session, const guard::ModeChange& change);
void set_policy(Session& session, const guard::PolicyChange& change);
// How many were switched to shadow. Waits for nobody; where someone else is writing, the audit has
// it from the next change of mode on.
std::int64_t emergency(Session& session, const std::string& guard, const std::string& reason);
// How many rows went.
std::int64_t compact(Session& session, const std::string& guard, std::uint64_t below);

[[nodiscard]] std::vector<guard::Status> status(Session& session,
                                                const std::string& guard);  // empty: all
[[nodiscard]] std::vector<guard::Sighting> sightings(Session& session, const std::string& guard);
[[nodiscard]] std::vector<guard::Problem> problems(Session& session);

}  // namespace pawl::sqlite
