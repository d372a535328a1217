// The output of a drill: for people, and as JSON.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/json.h"
#include "drill/record.h"

namespace pawl::cli {

// One line of the log.
[[nodiscard]] std::string to_line(Console& console, const drill::LogEntry& entry);
// Passed or failed, why, the figures, and notes.
[[nodiscard]] std::string to_verdict(Console& console, const drill::DrillRecord& record);
void write(Json& json, const drill::DrillRecord& record);

}  // namespace pawl::cli
