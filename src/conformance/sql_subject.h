// Pawl's guard in a database, in each of the forms it can be used in.
#pragma once

#include <memory>

#include "conformance/sql_database.h"
#include "conformance/sql_place.h"
#include "conformance/subject.h"

namespace pawl::conformance {

// Works with tables and guards of its own, named pawl_conformance_…, in a schema of that name where
// there are schemas, and removes them at its end.
[[nodiscard]] Result<std::unique_ptr<Subject>> make_sql_subject(
    std::unique_ptr<SqlDatabase> database, Form form);

}  // namespace pawl::conformance
