// Pawl's guard in a SQLite file, in each of the forms it can be used in.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "conformance/subject.h"

namespace pawl::conformance {

enum class SqliteForm : std::uint8_t {
  kAdmit,  // pawl_create_guard(name), and writers who call pawl_admit() themselves
  kKeyed,  // pawl_create_guard(name, 1), the same with a fence per key
  kTable,  // pawl_protect(table): triggers ask, and pawl_use() carries the token to them
  kRow,    // pawl_protect(table, column): each row is a resource
  kBy,     // pawl_protect(table, expression): rows share a resource
};
inline constexpr std::array kSqliteForms{SqliteForm::kAdmit, SqliteForm::kKeyed, SqliteForm::kTable,
                                         SqliteForm::kRow, SqliteForm::kBy};
[[nodiscard]] std::string_view to_text(SqliteForm form);

// Works with tables and guards of its own, named pawl_conformance_…, and removes them at its end. The guard must be
// installed there, and the file in WAL mode: with a rollback journal an open reader keeps others from committing, which
// is not what the cases are about. The order of effects is that of inserts; where one writes at a time it is that of
// commits.
[[nodiscard]] Result<std::unique_ptr<Subject>> start_sqlite_subject(const std::string& path, SqliteForm form);

}  // namespace pawl::conformance
