#include "guard/sqlite/key_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <vector>

#include "guard/sqlite/fault.h"
#include "guard/sqlite/statement.h"
#include "guard/sqlite/store.h"

namespace pawl::sqlite {
namespace {

std::string upper(std::string_view given) {
  std::string text(given);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool is_own_collation(std::string_view collation) {
  return collation == "BINARY" || collation == "NOCASE" || collation == "RTRIM";
}

std::optional<std::string> why_no_key_column(sqlite3* db, const std::string& table,
                                             const std::string& column) {
  if (const std::string collation = declared_collation(db, "main", table, column);
      !is_own_collation(collation))
    return fmt::format(
        "the column {} has the collation {} of an application, and only that knows which keys are "
        "equal: guard by an expression, or by another column",
        column, collation);
  const char* declared = nullptr;
  sqlite3_table_column_metadata(db, "main", table.c_str(), column.c_str(), &declared, nullptr,
                                nullptr, nullptr, nullptr);
  const std::string type = upper(declared == nullptr ? "" : declared);
  const auto says = [&](const char* word) { return type.find(word) != type.npos; };
  // As SQLite derives the affinity.
  const bool whole_or_text = says("INT") || says("CHAR") || says("CLOB") || says("TEXT");
  if (type.empty() || type == "ANY" ||
      (!whole_or_text && (says("BLOB") || says("REAL") || says("FLOA") || says("DOUB"))))
    return fmt::format(
        "the column {} has {}, where equal keys may differ as text (7 and 7.0): declare it INTEGER "
        "or TEXT, or guard by another column",
        column, type.empty() ? "no type" : "the type " + type);
  return std::nullopt;
}

// --- Expressions ---------------------------------------------------------------------------------

// A name, without its quotes, or one other character. Literals are left out.
struct Token {
  bool name = false;
  std::string text;
};

bool is_of_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> tokens;
  while (!sql.empty()) {
    std::size_t length = 1;
    if (constexpr std::string_view kQuotes = "'\"`["; kQuotes.find(sql[0]) != kQuotes.npos) {
      const std::size_t end = sql.find(sql[0] == '[' ? ']' : sql[0], 1);
      length = std::min(end, sql.size() - 1) + 1;
      if (sql[0] != '\'') tokens.push_back({true, std::string(sql.substr(1, length - 2))});
    } else if (is_of_a_name(sql[0])) {
      while (length < sql.size() && is_of_a_name(sql[length])) ++length;
      tokens.push_back({true, std::string(sql.substr(0, length))});
    } else if (std::isspace(static_cast<unsigned char>(sql[0])) == 0) {
      tokens.push_back({false, std::string(sql.substr(0, 1))});
    }
    sql.remove_prefix(length);
  }
  return tokens;
}

// The function of which this token is the only argument, in upper case; empty: there is none.
std::string function_around(const std::vector<Token>& tokens, std::size_t index) {
  if (index < 2 || index + 1 >= tokens.size()) return {};
  if (tokens[index - 1].text != "(" || tokens[index + 1].text != ")") return {};
  return tokens[index - 2].name ? upper(tokens[index - 2].text) : std::string();
}

constexpr const char* kProbe = "temp.pawl_probe";

// A table with the columns of this one, and with the expression as a generated column: SQLite
// itself insists that such a one depends on its row alone.
std::string probe_sql(const std::vector<std::string>& columns, const std::string& expression) {
  std::string sql = fmt::format("CREATE TABLE {} (", kProbe);
  for (const std::string& column : columns) sql += quoted(column) + ", ";
  return sql + fmt::format("\"pawl probe\" AS ({}) STORED)", expression);
}

std::string not_constant(std::string_view why) {
  return fmt::format(
      "the key of a row must follow from its columns alone, or a row has another key each time it "
      "is judged: {}",
      why);
}

// A name in double quotes that is no column is one here, not a text.
class NoTextInDoubleQuotes {
 public:
  explicit NoTextInDoubleQuotes(sqlite3* db) : db_(db) {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DDL, -1, &before_);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  }
  ~NoTextInDoubleQuotes() { sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DDL, before_, nullptr); }
  NoTextInDoubleQuotes(const NoTextInDoubleQuotes&) = delete;
  NoTextInDoubleQuotes& operator=(const NoTextInDoubleQuotes&) = delete;

 private:
  sqlite3* db_;
  int before_ = 1;
};

// Prepares it only: names are resolved then, and functions known.
std::optional<std::string> why_not_of_its_row(sqlite3* db, const std::vector<std::string>& columns,
                                              const std::string& expression) {
  const NoTextInDoubleQuotes no_text(db);
  try {
    const Statement prepared(db, probe_sql(columns, expression));
  } catch (const Fault& fault) {
    return not_constant(fault.text);
  }
  return std::nullopt;
}

std::optional<std::string> why_no_expression(sqlite3* db, const std::string& table,
                                             const std::vector<std::string>& columns,
                                             const std::string& expression) {
  const std::vector<Token> tokens = tokens_of(expression);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].name) continue;
    if (upper(tokens[i].text) == "COLLATE")
      return "a key is compared as text; say lower(…) or rtrim(…) in the expression instead of "
             "COLLATE";
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const std::string& each) {
      return upper(each) == upper(tokens[i].text);
    });
    if (column == columns.end()) continue;
    const std::string collation = declared_collation(db, "main", table, *column);
    const std::string around = function_around(tokens, i);
    const bool one_form = collation == "BINARY" ||
                          (collation == "NOCASE" && (around == "LOWER" || around == "UPPER")) ||
                          (collation == "RTRIM" && around == "RTRIM");
    if (one_form) continue;
    if (!is_own_collation(collation))
      return fmt::format(
          "the column {} has the collation {} of an application, and only that knows which values "
          "are equal: leave it out of the expression",
          *column, collation);
    return fmt::format(
        "the column {0} has the collation {1}, so equal values may differ as text: write {2}({0}) "
        "in the expression, or guard by the column itself",
        *column, collation, collation == "NOCASE" ? "lower" : "rtrim");
  }
  return why_not_of_its_row(db, columns, expression);
}

}  // namespace

std::optional<std::string> why_no_key(sqlite3* db, const std::string& table,
                                      const std::string& kind, const std::string& key) {
  const std::vector<std::string> columns = columns_of(db, table);
  const bool there = std::find(columns.begin(), columns.end(), key) != columns.end();
  if (columns.empty()) return std::nullopt;
  if (kind == "row" && !there) return fmt::format("{} has no column {}", table, key);
  if (kind == "row") return why_no_key_column(db, table, key);
  if (kind == "expression") return why_no_expression(db, table, columns, key);
  return std::nullopt;
}

bool has_key(sqlite3* db, const std::string& table, const std::string& kind,
             const std::string& key) {
  const std::vector<std::string> columns = columns_of(db, table);
  if (kind == "row") return std::find(columns.begin(), columns.end(), key) != columns.end();
  return kind != "expression" || !why_not_of_its_row(db, columns, key);
}

std::string key_form(sqlite3* db, const std::vector<Protected>& tables) {
  std::set<std::string> forms;
  for (const Protected& each : tables) {
    const char* declared = nullptr;
    if (each.kind != "row" ||
        sqlite3_table_column_metadata(db, "main", each.table.c_str(), each.key.c_str(), &declared,
                                      nullptr, nullptr, nullptr, nullptr) != SQLITE_OK)
      continue;
    const bool text = affinity_of(declared == nullptr ? "" : declared) == "TEXT";
    forms.insert(fmt::format("{} {}", text ? "text" : "number",
                             declared_collation(db, "main", each.table, each.key)));
  }
  return fmt::format("{}", fmt::join(forms, ", "));
}

bool keeps_fences(const std::string& before, const std::string& now) {
  if (before == now) return true;
  const bool from_text = before.find("text ") != before.npos;
  const bool to_number = now.find("number ") != now.npos;
  const auto folds = [](const std::string& form) {
    return form.find("NOCASE") != form.npos || form.find("RTRIM") != form.npos;
  };
  const auto collation = [](const std::string& form) { return form.substr(form.rfind(' ')); };
  return !(from_text && to_number) && (!folds(before) || collation(before) == collation(now));
}

std::optional<std::string> why_not_constant(sqlite3* db, const std::string& table,
                                            const std::string& expression) {
  std::optional<std::string> why;
  execute(db, fmt::format("DROP TABLE IF EXISTS {}", kProbe));
  execute(db, probe_sql(columns_of(db, table), expression));
  try {
    execute(db, fmt::format("INSERT INTO {} DEFAULT VALUES", kProbe));
  } catch (const Fault& fault) {  // It may well fail for an empty row.
    if (fault.text.find("non-deterministic") != fault.text.npos) why = not_constant(fault.text);
  }
  execute(db, fmt::format("DROP TABLE {}", kProbe));
  return why;
}

}  // namespace pawl::sqlite
