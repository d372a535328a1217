// What a record comes to. Pure.
#pragma once

#include "drill/record.h"

namespace pawl::drill {

// Whether each write was stale: a greater token had been granted when it was sent. Sets
// Write::stale, and makes kLetThrough of what is in effect although it was.
void mark_stale(Record& record);

// A drill has passed when stale writes were sent, every one of them was refused, and no other was.
// One in which nothing stale was sent shows nothing, and has not passed.
[[nodiscard]] Verdict judge(const Record& record);

}  // namespace pawl::drill
