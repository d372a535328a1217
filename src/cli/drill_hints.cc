#include "cli/drill_hints.h"

#include <fmt/format.h>

#include <vector>

#include "guard/kinds.h"

namespace pawl::cli {
namespace {

constexpr const char* kSqliteWhere = "--file shop.db";

struct Server {
  std::string kind;
  std::string title;
  std::string where;
};

// Those that seem to be on this machine. They are not connected to.
std::vector<Server> local_servers() {
  std::vector<Server> found;
  for (const guard::Kind* kind : guard::all_kinds()) {
    if (kind->seems_local != nullptr && kind->seems_local())
      found.push_back({std::string(kind->name), std::string(kind->title),
                       "--dsn " + std::string(kind->where_example)});
  }
  return found;
}

std::string install_and(std::string_view kind, std::string_view where, std::string_view command) {
  return fmt::format("  pawl guard install {0} {1}\n  {2} --guard {0} {1}\n", kind, where, command);
}

}  // namespace

std::string own_database_hint(std::string_view drill) {
  const std::string command = fmt::format("pawl drill {}", drill);
  if (const auto servers = local_servers(); !servers.empty()) {
    const Server& server = servers.front();
    return fmt::format("To drill your own {} database (pawld must be running):\n{}", server.title,
                       install_and(server.kind, server.where, command));
  }
  return fmt::format(
      "To drill your own database, for example the SQLite file shop.db (pawld must be running):\n"
      "  sqlite3 shop.db \"PRAGMA journal_mode = WAL\"\n{}",
      install_and("sqlite", kSqliteWhere, command));
}

std::string next_steps_hint() {
  std::string text;
  for (const Server& server : local_servers()) {
    text += fmt::format("The same in {}, which seems to run on this machine:\n{}\n", server.title,
                        install_and(server.kind, server.where, "pawl demo"));
  }
  return text + fmt::format(
                    "Put a table of your own under guard (docs/how-to/guard-sqlite.md):\n"
                    "  sqlite3 shop.db \"PRAGMA journal_mode = WAL\"\n"
                    "  sqlite3 shop.db \"CREATE TABLE IF NOT EXISTS orders (id INTEGER, n INT)\"\n"
                    "  pawl guard install sqlite {0}\n"
                    "  pawl guard protect sqlite orders {0}\n"
                    "\n"
                    "Drill it: freeze, cut off and kill workers (docs/how-to/drill.md):\n"
                    "  pawld --data pawl-data &\n"
                    "  pawl drill pause --guard sqlite {0}\n"
                    "\n"
                    "Run a command under a lock (docs/reference/pawl-run.md):\n"
                    "  pawl run orders -- echo \"I hold the lock\"\n",
                    kSqliteWhere);
}

}  // namespace pawl::cli
