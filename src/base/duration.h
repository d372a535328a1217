// Durations as people write and read them: 250ms, 15s, 5m, 1h.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"
#include "pawl/result.h"

namespace pawl {

// A whole number and a unit (ms, s, m, h). A number without a unit is refused, with a hint.
[[nodiscard]] Result<Millis> parse_duration(std::string_view text);

// For people, about three digits: 250ms, 9.3s, 15s, 4m12s, 2h05m, 3d04h. Negative: 0ms.
[[nodiscard]] std::string to_text(Millis span);

}  // namespace pawl
