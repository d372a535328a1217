// The triggers that put a table under guard. They call pawl_judge(), which only Pawl's extension
// has: a connection without it cannot write to the table at all.
//
// A guard of a whole table asks before each row. A guard with keys asks for the row that was and
// for the row that will be: after an insert, because only then an INTEGER PRIMARY KEY is known.
// REPLACE deletes rows behind the triggers' back (they fire for those only under PRAGMA
// recursive_triggers); so before it, every row that shares a unique value with the new one is
// judged as well (see null_defaults.h for what that row will have).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/sqlite/api.h"
#include "guard/sqlite/rules.h"

namespace pawl::sqlite {

struct Trigger {
  std::string name;
  std::string sql;  // CREATE TRIGGER …, exactly as SQLite keeps it
};

struct Protected {
  std::string table;
  std::int64_t installation = 0;
  std::int64_t guard = 0;
  std::string kind;  // static, row, expression
  std::string key;
};

// Throws where the table cannot be put under such a guard.
[[nodiscard]] std::vector<Trigger> triggers_for(sqlite3* db, const Protected& wanted);

// Whether the triggers that are there judge every row that REPLACE could delete: not after a unique
// index was made. Yes also where they are gone.
[[nodiscard]] bool covers_unique_indexes(sqlite3* db, const Protected& entry);

// The column that the triggers of a table take the key from. SQLite renames it in them too; so it
// may have another name than in pawl_guard. Nothing: they are gone, or no column is the key.
[[nodiscard]] std::optional<std::string> watched_column(sqlite3* db, const Protected& entry);
// Whether that is another one than the guard's.
[[nodiscard]] bool is_other_column(sqlite3* db, const Protected& entry);

// The type that a comparison with a column converts the other value to; empty: none.
[[nodiscard]] std::string affinity_of(const std::string& declared);

// Columns of main.table, in their order; none: there is no such table.
[[nodiscard]] std::vector<std::string> columns_of(sqlite3* db, const std::string& table);

}  // namespace pawl::sqlite
