// The values that REPLACE puts in the place of NULL: the defaults of NOT NULL columns. It does so
// after the BEFORE triggers, which still see NULL; so they ask here what the new row will have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "guard/sqlite/api.h"

namespace pawl::sqlite {

class NullDefaults {
 public:
  NullDefaults(sqlite3* db, const std::string& table);

  // In a trigger: the value that a column of NEW will have.
  [[nodiscard]] std::string new_value(const std::string& column) const;

  // In a trigger: whether one of these columns may get a value that is not known there, because its
  // default calls a function, or because it is generated from another column. Empty: never.
  [[nodiscard]] std::string undetermined(const std::vector<std::string>& columns) const;
  // In a trigger: whether any column gets its default. Empty: never.
  [[nodiscard]] std::string any() const;

 private:
  std::map<std::string, std::string> defaults_;  // columns that are never NULL; SQL as it is kept
  std::vector<std::string> generated_;
};

}  // namespace pawl::sqlite
