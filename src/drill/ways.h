// Sends a stale write to a drill's target in every way in which a program may give its token: by a
// call that asks first, by a token that only the write itself is judged by, and without one.
//
// A refusal by the call says nothing about the table: its triggers may be disabled. So the write is
// sent, each time on a new connection, which has never used a token, and is always rolled back.
#pragma once

#include <cstdint>
#include <vector>

#include "drill/record.h"
#include "drill/target.h"
#include "pawl/result.h"

namespace pawl::drill {

// One entry for each Way. `token` is older than the fence. An error: the target was not reached.
[[nodiscard]] Result<std::vector<TriedWay>> try_ways(const Target& target, std::uint64_t token);

}  // namespace pawl::drill
