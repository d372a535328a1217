#include "guard/sqlite/triggers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "guard/sqlite/fault.h"
#include "guard/sqlite/null_defaults.h"
#include "guard/sqlite/statement.h"

namespace pawl::sqlite {
namespace {

using Columns = std::vector<std::string>;

// RAISE is never reached while pawl_judge is ours, which fails by itself. It refuses whatever a
// stranger of that name says.
std::string ask(const Protected& wanted, const std::string& key) {
  return fmt::format(
      "SELECT CASE WHEN pawl_judge({}, {}, {}) IS NOT 1 THEN RAISE(ABORT, 'PAWL_REFUSED') END",
      wanted.installation, wanted.guard, key);
}

// A SELECT of one value of the row OLD or NEW.
std::string in_row(const std::string& expression, const Columns& columns, const std::string& row) {
  Columns all;
  for (const std::string& column : columns)
    all.push_back(fmt::format("{}.{} AS {}", row, quoted(column), quoted(column)));
  return fmt::format("(SELECT {} FROM (SELECT {}))", expression, fmt::join(all, ", "));
}

// Whether NEW meets the condition of an index. A value of NEW has no affinity, and CAST gives it
// one; but CAST also changes a value that is not of its column's type. So both are asked.
std::string new_meets(sqlite3* db, const std::string& table, const std::string& condition) {
  Columns plain, typed;
  Statement listed(db, "SELECT name, type FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1");
  listed.bind(table);
  while (listed.step()) {
    const std::string name = quoted(listed.text(0));
    const std::string affinity = affinity_of(listed.text(1));
    plain.push_back(fmt::format("NEW.{0} AS {0}", name));
    typed.push_back(affinity.empty() ? plain.back()
                                     : fmt::format("CAST(NEW.{0} AS {1}) AS {0}", name, affinity));
  }
  return fmt::format("((SELECT ({0}) FROM (SELECT {1})) OR (SELECT ({0}) FROM (SELECT {2})))",
                     condition, fmt::join(plain, ", "), fmt::join(typed, ", "));
}

// The key of the row OLD or NEW.
std::string key_in(const Protected& wanted, const Columns& columns, const std::string& row) {
  if (wanted.kind == "row") return fmt::format("CAST({}.{} AS TEXT)", row, quoted(wanted.key));
  return in_row(fmt::format("CAST(({}) AS TEXT)", wanted.key), columns, row);
}

// The name of the row's number: none of the columns may have it.
std::string rowid_name(const Columns& columns) {
  for (const char* name : {"rowid", "_rowid_", "oid"}) {
    const bool taken = std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
      return sqlite3_stricmp(column.c_str(), name) == 0;
    });
    if (!taken) return name;
  }
  fail(Word::kInvalid,
       "columns named rowid, _rowid_ and oid hide the number of the row, by which REPLACE deletes: "
       "guard the whole table instead");
}

// The text behind the list of columns in CREATE INDEX: the condition of a partial index.
std::string condition_of(sqlite3* db, const std::string& index) {
  Statement asked(db, "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?1");
  const std::string sql = asked.bind(index).step() ? asked.text(0) : "";
  int depth = 0;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    const char c = sql[i];
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      i = sql.find(c == '[' ? ']' : c, i + 1);
      if (i == sql.npos) break;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      const std::size_t word = sql.find_first_not_of(" \t\n\r", i + 1);
      if (word != sql.npos && sqlite3_strnicmp(sql.c_str() + word, "WHERE", 5) == 0)
        return sql.substr(word + 5);
      break;
    }
  }
  fail(Word::kInvalid,
       fmt::format("the condition of the unique index {} cannot be read: guard the whole table "
                   "instead",
                   index));
}

// One condition: `other` shares all of these with the row that NEW becomes.
std::string shares(sqlite3* db, const std::string& table, const std::string& index, bool partial,
                   const Columns& columns, const NullDefaults& defaults) {
  Columns same;
  Columns named;
  if (partial) {  // It is about rows that meet its condition only. Names without a row are other's.
    const std::string condition = condition_of(db, index);
    same.push_back(fmt::format("({})", condition));
    same.push_back(new_meets(db, table, condition));
  }
  Statement parts(db, "SELECT cid, name, coll FROM pragma_index_xinfo(?1) WHERE key = 1");
  parts.bind(index);
  while (parts.step()) {
    if (parts.number(0) == -2)
      fail(Word::kInvalid,
           fmt::format("the unique index {} is on an expression, and REPLACE could delete "
                       "another key's row through it: guard the whole table instead",
                       index));
    const std::string name = parts.number(0) == -1 ? rowid_name(columns) : parts.text(1);
    same.push_back(fmt::format("other.{} = {} COLLATE {}", quoted(name), defaults.new_value(name),
                               quoted(parts.text(2))));
    named.push_back(name);
  }
  const std::string all_rows = partial ? defaults.any() : defaults.undetermined(named);
  return fmt::format("({})", fmt::join(same, " AND ")) +
         (all_rows.empty() ? "" : " OR " + all_rows);
}

// Every way in which a new row can be in another one's place.
std::string conflicts(sqlite3* db, const Protected& wanted, const Columns& columns) {
  Columns ways;
  const NullDefaults defaults(db, wanted.table);
  Statement indexes(db, "SELECT name, partial FROM pragma_index_list(?1) WHERE \"unique\" = 1");
  indexes.bind(wanted.table);
  while (indexes.step())
    ways.push_back(
        shares(db, wanted.table, indexes.text(0), indexes.number(1) != 0, columns, defaults));
  Statement listed(db, "SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'");
  listed.bind(wanted.table);
  if (listed.step() && listed.number(0) == 0)
    ways.push_back(fmt::format("other.{0} = NEW.{0}", rowid_name(columns)));
  return fmt::format("{}", fmt::join(ways, " OR "));
}

std::string trigger_name(const Protected& wanted, const std::string& when) {
  std::string name = fmt::format("pawl_{}_{}", wanted.table, when);
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}

// As SQLite keeps it; empty: it is gone.
std::string kept_sql(sqlite3* db, const Protected& entry, const std::string& when) {
  Statement asked(db,
                  "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?1 AND "
                  "tbl_name = ?2 COLLATE NOCASE");
  return asked.bind(trigger_name(entry, when), entry.table).step() ? asked.text(0) : std::string();
}

Trigger trigger(const Protected& wanted, const std::string& when, const std::string& condition,
                const std::string& body) {
  std::string name = trigger_name(wanted, when);
  std::string sql = fmt::format("CREATE TRIGGER {} {} ON {} {}BEGIN {} END", quoted(name), when,
                                quoted(wanted.table), condition, body);
  return {std::move(name), std::move(sql)};
}

std::vector<Trigger> for_keys(sqlite3* db, const Protected& wanted, const Columns& columns) {
  const std::string before = key_in(wanted, columns, "OLD");
  const std::string after = key_in(wanted, columns, "NEW");
  const std::string others =
      ask(wanted, wanted.kind == "row" ? fmt::format("CAST(other.{} AS TEXT)", quoted(wanted.key))
                                       : fmt::format("CAST(({}) AS TEXT)", wanted.key)) +
      fmt::format(" FROM {} AS other WHERE {};", quoted(wanted.table),
                  conflicts(db, wanted, columns));
  const std::string connection = fmt::format(
      "SELECT CASE WHEN pawl_judge({}, {}) IS NOT 1 THEN RAISE(ABORT, 'PAWL_REFUSED') END; ",
      wanted.installation, wanted.guard);
  return {
      trigger(wanted, "BEFORE INSERT", "", connection + others),
      trigger(wanted, "AFTER INSERT", "", ask(wanted, after) + ";"),
      trigger(wanted, "BEFORE UPDATE", "", ask(wanted, before) + "; " + others),
      trigger(wanted, "AFTER UPDATE", fmt::format("WHEN {} IS NOT {} ", before, after),
              ask(wanted, after) + ";"),
      trigger(wanted, "BEFORE DELETE", "", ask(wanted, before) + ";"),
  };
}

void check_table(sqlite3* db, const std::string& table) {
  Statement listed(db, "SELECT type FROM pragma_table_list(?1) WHERE schema = 'main'");
  listed.bind(table);
  if (!listed.step())
    fail(Word::kInvalid, fmt::format("there is no table \"{}\" in this file", table));
  if (listed.text(0) != "table")
    fail(Word::kInvalid,
         fmt::format("\"{}\" is a {} table, which no trigger can watch: guard what is behind it",
                     table, listed.text(0)));
}

}  // namespace

std::string affinity_of(const std::string& declared) {
  std::string type = declared;
  for (char& c : type) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto has = [&](const char* part) { return type.find(part) != type.npos; };
  if (has("INT")) return "INTEGER";
  if (has("CHAR") || has("CLOB") || has("TEXT")) return "TEXT";
  if (type.empty() || has("BLOB")) return {};
  return has("REAL") || has("FLOA") || has("DOUB") ? "REAL" : "NUMERIC";
}

bool covers_unique_indexes(sqlite3* db, const Protected& entry) {
  const std::string kept = kept_sql(db, entry, "BEFORE INSERT");
  if (kept.empty()) return true;
  try {
    return kept.find(fmt::format(" WHERE {};",
                                 conflicts(db, entry, columns_of(db, entry.table)))) != kept.npos;
  } catch (const Fault&) {  // One that cannot be judged.
    return false;
  }
}

std::optional<std::string> watched_column(sqlite3* db, const Protected& entry) {
  constexpr std::string_view kBefore = "CAST(NEW.\"";
  const std::string sql = kept_sql(db, entry, "AFTER INSERT");
  const std::size_t found = sql.find(kBefore);
  if (entry.kind != "row" || found == sql.npos) return std::nullopt;
  std::string name;
  for (std::size_t i = found + kBefore.size(); i < sql.size(); ++i) {
    if (sql[i] == '"' && sql[++i] != '"') break;  // A quote in the name is doubled.
    name += sql[i];
  }
  return name;
}

bool is_other_column(sqlite3* db, const Protected& entry) {
  const auto column = watched_column(db, entry);
  return column && *column != entry.key;
}

std::vector<std::string> columns_of(sqlite3* db, const std::string& table) {
  Columns columns;
  Statement listed(db, "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1");
  listed.bind(table);
  while (listed.step()) columns.push_back(listed.text(0));
  return columns;
}

std::vector<Trigger> triggers_for(sqlite3* db, const Protected& wanted) {
  check_table(db, wanted.table);
  if (wanted.kind != "static") return for_keys(db, wanted, columns_of(db, wanted.table));
  std::vector<Trigger> all;
  for (const char* when : {"BEFORE INSERT", "BEFORE UPDATE", "BEFORE DELETE"})
    all.push_back(trigger(wanted, when, "", ask(wanted, "''") + ";"));
  return all;
}

}  // namespace pawl::sqlite
