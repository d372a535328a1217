// The report of a drill: one HTML file that a person can read at a glance and attach to a change
// request.
//
// It has the verdict with its figures, a summary in sentences, the timeline, the log, and the
// configuration. It loads nothing and executes nothing; its content security policy forbids both.
// It follows the reader's light or dark mode, and can be printed.
#pragma once

#include <string>

#include "drill/record.h"

namespace pawl::drill {

// Texts of the record are escaped: they are shown as text, whatever they contain.
[[nodiscard]] std::string report_page(const DrillRecord& record);

}  // namespace pawl::drill
