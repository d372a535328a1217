// What differs between the databases that Pawl's guard is in, for SqlSubject.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/sql_place.h"
#include "conformance/subject.h"
#include "guard/administration.h"

namespace pawl::conformance {

struct SqlTraits {
  std::string_view kind;
  std::string_view call;  // What stands before the name of a function of the guard, in SQL.
  std::string_view
      by;  // protect()'s expression for rows that share what their column `resource` names
  bool schemas = true;
  Abilities abilities = {};  // beyond what all of them can
  Abilities watched = {};    // beyond that, where a trigger judges
};

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;

  [[nodiscard]] virtual const SqlTraits& traits() const = 0;
  virtual guard::Administration& administration() = 0;
  // Before anything else: whether the cases can be run there.
  virtual Result<void> inspect() = 0;
  // Said after the subject's name, or nothing: how effects are ordered.
  [[nodiscard]] virtual std::string remark(Layout layout) const = 0;

  virtual Result<void> run(const std::string& sql) = 0;
  // Between the brackets of CREATE TABLE.
  [[nodiscard]] virtual std::string_view columns(Layout layout) const = 0;
  virtual Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                              const std::string& key) = 0;
  // On a connection of its own.
  virtual Result<std::unique_ptr<Session>> open(const Place& place) = 0;
};

// `where` as the guard's Administration of that database reads it.
[[nodiscard]] Result<std::unique_ptr<SqlDatabase>> open_postgres_database(const std::string& where);
[[nodiscard]] Result<std::unique_ptr<SqlDatabase>> open_sqlite_database(const std::string& where);
[[nodiscard]] Result<std::unique_ptr<SqlDatabase>> open_maria_database(const std::string& where);

}  // namespace pawl::conformance
