// A writer that changes what it is told to: one statement, in a transaction under the token.
#pragma once

#include <memory>

#include "drill/target.h"

namespace pawl::drill {

// target.statement is run with `:value` and `:token` replaced: by the write's value, as a text of SQL, and by its token.
// Where target.guarded is false nobody is asked.
[[nodiscard]] Result<std::unique_ptr<Writer>> open_statement_writer(const Target& target);

}  // namespace pawl::drill
