// The commands that lead from `pawl demo`, or a drill without a database, to the user's own
// database.
#pragma once

#include <string>
#include <string_view>

namespace pawl::cli {

// The last lines of a drill without --guard: how to run this drill on the user's own database.
[[nodiscard]] std::string own_database_hint(std::string_view drill);

// The last lines of the demo: the same demo in a server that seems to be on this machine, and the
// commands to put a table under guard, drill it, and run a command under its lock. Those for SQLite
// work as they stand.
[[nodiscard]] std::string next_steps_hint();

}  // namespace pawl::cli
