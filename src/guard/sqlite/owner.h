// What owners do with a guard in main: install, protect, modes and policies. Each call is a
// transaction of its own, or part of the one that is open. Whatever fails is thrown as a Fault, and
// nothing has changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/administration.h"
#include "guard/sqlite/connection_state.h"

namespace pawl::sqlite {

[[nodiscard]] std::string_view install_script();
[[nodiscard]] std::optional<guard::Installation> installed(sqlite3* db);
void install(sqlite3* db);
void uninstall(ConnectionState& state);

// Keys other than a column are expressions. The guard's name.
std::string protect(ConnectionState& state, const guard::Protection& wanted);
void unprotect(ConnectionState& state, const std::string& table);
// Without a table: for what pawl_admit() protects.
void create_guard(ConnectionState& state, const std::string& name, bool keyed);
void drop_guard(ConnectionState& state, const std::string& name);

void set_mode(ConnectionState& state, const guard::ModeChange& change);
// Removes the lines of its emergency switch; a change of mode has ended them.
void end_emergencies(Store& store, const std::string& guard);
void set_policy(ConnectionState& state, const guard::PolicyChange& change);
// How many were switched to shadow. Does not wait; where another connection is writing, the audit
// has it from the next change of mode on.
std::int64_t emergency(ConnectionState& state, const std::string& guard, const std::string& reason);
// How many rows went.
std::int64_t compact(ConnectionState& state, const std::string& guard, std::uint64_t below);

[[nodiscard]] std::vector<guard::Status> status(ConnectionState& state,
                                                const std::string& guard);  // empty: all
[[nodiscard]] std::vector<guard::Sighting> sightings(ConnectionState& state,
                                                     const std::string& guard);
// Fenced, unless the connection cannot take a refused write back.
[[nodiscard]] GuardStrength strength_of(sqlite3* db);
[[nodiscard]] std::vector<guard::Problem> problems(ConnectionState& state);

}  // namespace pawl::sqlite
