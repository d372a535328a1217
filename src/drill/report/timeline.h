// The timeline of a drill as inline SVG: who held the lock according to pawld, who believed so, the
// faults, and the outcome of each write. Colours come from page_style.h; shapes alone are enough to
// read it.
#pragma once

#include <string>

#include "drill/record.h"
#include "drill/report/summary.h"

namespace pawl::drill {

// One <svg> per row, with the steps of the summary as numbers.
[[nodiscard]] std::string timeline(const DrillRecord& record, const Summary& summary);

}  // namespace pawl::drill
