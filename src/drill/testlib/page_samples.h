// Records made by hand, for tests of the report page and for looking at it.
#pragma once

#include <string>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

[[nodiscard]] DrillRecord passed_pause();
[[nodiscard]] DrillRecord shadowed_pause();  // stale writes got through a guard in shadow
[[nodiscard]] DrillRecord unguarded_pause();
[[nodiscard]] DrillRecord flapping(int times);
[[nodiscard]] DrillRecord issuer_restart();  // pawld killed and restarted; very large tokens
[[nodiscard]] DrillRecord idle();            // no stale write was sent
[[nodiscard]] DrillRecord bypassed();        // failed: only the call was refused, not the write
[[nodiscard]] DrillRecord tokenless();       // passed, but require_token is off
[[nodiscard]] DrillRecord hostile();         // every text tries to be markup

struct Sample {
  std::string name;
  DrillRecord record;
};
[[nodiscard]] std::vector<Sample> samples();

}  // namespace pawl::drill
