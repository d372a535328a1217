#include "guard/sqlite/null_defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "guard/sqlite/fault.h"
#include "guard/sqlite/statement.h"

namespace pawl::sqlite {
namespace {

// Whether the text of a default has the same value in a trigger. Not a function, which may have
// another value each time; nor a name, which only a default takes for text.
bool is_literal(const std::string& text) {
  constexpr std::string_view kBegins = "'+-.0123456789";
  if (text.front() != '\'' && text.find('(') != text.npos) return false;
  if (kBegins.find(text.front()) != kBegins.npos || sqlite3_strnicmp(text.c_str(), "x'", 2) == 0)
    return true;
  const auto words = {"TRUE", "FALSE", "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"};
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return sqlite3_stricmp(text.c_str(), word) == 0; });
}

std::string is_null(const std::string& column) {
  return fmt::format("NEW.{} IS NULL", quoted(column));
}

}  // namespace

NullDefaults::NullDefaults(sqlite3* db, const std::string& table) {
  Statement listed(db,
                   "SELECT name, dflt_value, hidden, \"notnull\" OR pk FROM "
                   "pragma_table_xinfo(?1, 'main') WHERE hidden <> 1");
  listed.bind(table);
  while (listed.step()) {
    const std::string value = listed.text(1);
    if (listed.number(2) != 0) generated_.push_back(listed.text(0));
    if (listed.number(3) != 0 && !value.empty() && sqlite3_stricmp(value.c_str(), "NULL") != 0)
      defaults_[listed.text(0)] = value;
  }
}

std::string NullDefaults::new_value(const std::string& column) const {
  const std::string given = fmt::format("NEW.{}", quoted(column));
  const auto found = defaults_.find(column);
  if (found == defaults_.end() || !is_literal(found->second)) return given;
  return fmt::format("IFNULL({}, {})", given, found->second);
}

std::string NullDefaults::undetermined(const std::vector<std::string>& columns) const {
  const auto reads = [&](const std::string& column) {
    return std::find(columns.begin(), columns.end(), column) != columns.end();
  };
  if (std::any_of(generated_.begin(), generated_.end(), reads)) return any();
  std::vector<std::string> ways;
  for (const auto& [column, value] : defaults_) {
    if (reads(column) && !is_literal(value)) ways.push_back(is_null(column));
  }
  return fmt::format("{}", fmt::join(ways, " OR "));
}

std::string NullDefaults::any() const {
  std::vector<std::string> ways;
  for (const auto& [column, value] : defaults_) ways.push_back(is_null(column));
  return fmt::format("{}", fmt::join(ways, " OR "));
}

}  // namespace pawl::sqlite
