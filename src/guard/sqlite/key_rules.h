// Which columns and expressions can be the key of a guard: those where two keys are the same when
// their text is, or when a collation of SQLite's own says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guard/sqlite/api.h"
#include "guard/sqlite/triggers.h"

namespace pawl::sqlite {

// Why this key of main.table cannot be one, and what can. Nothing: it can, or the table is gone.
// `kind` as in Protected.
[[nodiscard]] std::optional<std::string> why_no_key(sqlite3* db, const std::string& table,
                                                    const std::string& kind,
                                                    const std::string& key);
// Whether triggers can take this key from the rows of the table as it is now, good or bad: its
// column is there, or all that the expression names.
[[nodiscard]] bool has_key(sqlite3* db, const std::string& table, const std::string& kind,
                           const std::string& key);
// Why a key cannot be one, for what only its evaluation tells: an expression that uses the time.
// Makes a temporary table and drops it.
[[nodiscard]] std::optional<std::string> why_not_constant(sqlite3* db, const std::string& table,
                                                          const std::string& expression);

// How the keys of these tables are spelled, as pawl_key_form has it; empty: no column is their key.
[[nodiscard]] std::string key_form(sqlite3* db, const std::vector<Protected>& tables);
// Whether fences that were stored under one form are right under another, as their keys are or
// after Store::refold(): a number that is a text now, a text that has got a collation.
[[nodiscard]] bool keeps_fences(const std::string& before, const std::string& now);

}  // namespace pawl::sqlite
