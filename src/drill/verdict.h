// Judges the record of a drill. Pure.
#pragma once

#include "drill/record.h"

namespace pawl::drill {

// Sets Write::stale: a greater token had been granted when the write was sent. A stale write that
// is in effect becomes kLetThrough.
void mark_stale(DrillRecord& record);

// A drill has passed when stale writes were sent, all of them were refused in every way in which
// the guard's policy refuses them, no other write was refused, tokens only grew, and the guard is in
// mode enforce and reports no error. A drill without a stale write has shown nothing and has not
// passed.
[[nodiscard]] DrillVerdict judge(const DrillRecord& record);

}  // namespace pawl::drill
