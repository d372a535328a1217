// What a drill showed, explained by its first stale write, for readers who do not know fencing.
#pragma once

#include <string>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

struct SummaryStep {
  Moment at{};
  std::string text;  // plain, not escaped
};

struct Summary {
  std::vector<SummaryStep> steps;  // in order of time
  std::string others;              // the outcome of all other stale writes; empty: there are none
};

// Explains a stale write that got through, if there is one; else one that was refused; else one
// that was not sent. Empty without a stale write.
[[nodiscard]] Summary summarize(const DrillRecord& record);

}  // namespace pawl::drill
