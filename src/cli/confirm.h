// Asks before something that cannot be taken back.
#pragma once

#include <string_view>

#include "cli/console.h"
#include "pawl/result.h"

namespace pawl::cli {

// Whether to go on. Without a terminal to ask on: an error that names --yes, and `warning` as the
// reason.
[[nodiscard]] Result<bool> confirm(Console& console, std::string_view warning,
                                   std::string_view question);

}  // namespace pawl::cli
