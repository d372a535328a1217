// Scratch resources in a database with Pawl's guard, in each form it can be used in; and what each
// Kind of database needs to implement Kind::open_session and Kind::open_scratch.
#pragma once

#include <memory>
#include <string_view>

#include "guard/kind.h"
#include "guard/sql/database.h"

namespace pawl::guard {

// Every database can do this, in every form.
inline constexpr Abilities kSqlAbilities{
    Ability::kTransactions, Ability::kConcurrency, Ability::kOperationSet, Ability::kSeveral,
    Ability::kUnguarded,    Ability::kModes,       Ability::kCanary,       Ability::kEmergency,
    Ability::kMaxStep,      Ability::kCounts,      Ability::kCompact,      Ability::kVanish};

// `form`: one of kFormNames. The space works with tables and guards of its own, named
// pawl_conformance_…, in a schema of that name where there are schemas, and removes them at its
// end.
[[nodiscard]] Result<std::unique_ptr<ScratchSpace>> open_sql_scratch(
    std::unique_ptr<SqlDatabase> database, std::string_view form);
[[nodiscard]] Result<std::unique_ptr<Session>> open_sql_session(
    std::unique_ptr<SqlDatabase> database, const SessionRequest& request);

}  // namespace pawl::guard
