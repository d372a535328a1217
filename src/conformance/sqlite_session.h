// One connection to a SQLite file as a Session, and the names that it shares with its Subject.
#pragma once

#include <memory>
#include <string>

#include "conformance/sqlite_subject.h"
#include "guard/sqlite/api.h"

namespace pawl::conformance {

// Where a form keeps what it guards.
struct SqlitePlace {
  SqliteForm form = SqliteForm::kAdmit;
  std::string prefix;

  // The guard of a resource: what stands before the first ':'.
  [[nodiscard]] static std::string guard_of(const std::string& resource);
  // What a resource's effects are marked with in their table.
  [[nodiscard]] std::string key_of(const std::string& resource) const;
  // The table that a resource's effects are in: of its guard's own, where tables are under guard.
  [[nodiscard]] std::string table_of(const std::string& resource) const;
  // Each key has a fence of its own.
  [[nodiscard]] bool keyed() const;
  // Triggers judge; else only those who ask are judged.
  [[nodiscard]] bool watched() const;
};

[[nodiscard]] std::unique_ptr<Session> make_sqlite_session(std::shared_ptr<sqlite3> db,
                                                           const SqlitePlace& place);

}  // namespace pawl::conformance
