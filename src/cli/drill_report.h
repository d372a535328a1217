// A drill's record for people and for programs.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/json.h"
#include "drill/record.h"

namespace pawl::cli {

// One line of what happens, as it happens.
[[nodiscard]] std::string to_line(Console& console, const drill::Line& line);
// What it comes to: passed or not, and the figures.
[[nodiscard]] std::string to_verdict(Console& console, const drill::Record& record);
void write(Json& json, const drill::Record& record);

}  // namespace pawl::cli
