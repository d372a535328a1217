// Pawl's guard in a PostgreSQL, in each of the forms it can be used in.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "conformance/subject.h"

namespace pawl::conformance {

enum class PostgresForm : std::uint8_t {
  kAdmit,  // create_guard(name), and writers who call admit() themselves
  kKeyed,  // create_guard(name, keyed => true), the same with a fence per key
  kTable,  // protect(table): a trigger asks, and use() carries the token to it
  kRow,    // protect(table, key => …): each row is a resource
  kBy,     // protect(table, by => …): rows share a resource
};
inline constexpr std::array kPostgresForms{PostgresForm::kAdmit, PostgresForm::kKeyed, PostgresForm::kTable,
                                           PostgresForm::kRow, PostgresForm::kBy};
[[nodiscard]] std::string_view to_text(PostgresForm form);

// Works in a schema and with guards of its own, named pawl_conformance_…, and removes them at its end. The guard must be
// installed there. The order of effects is the order of commits where the server records it (track_commit_timestamp),
// else the order of inserts, which shows less; name() tells which.
[[nodiscard]] Result<std::unique_ptr<Subject>> start_postgres_subject(const std::string& dsn,
                                                                      PostgresForm form);

}  // namespace pawl::conformance
