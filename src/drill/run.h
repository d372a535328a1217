// Carries out one drill, from making its scratch resource to the verdict.
#pragma once

#include <optional>

#include "drill/config.h"
#include "drill/drills.h"
#include "drill/record.h"

namespace pawl::drill {

// Exactly one of the three is set.
struct DrillResult {
  std::optional<DrillRecord> record = {};  // It was carried out; the record has the verdict.
  std::optional<Error> error = {};         // It could not be carried out.
  bool interrupted = false;
};

// When config.target names no resource, a scratch resource is made there, under a guard in
// config.mode or without one (kUnguarded), and removed afterwards. Otherwise the resource is the
// user's own, and config.mode is what its guard is in. When it names no database either, a
// ScratchDatabase is made for it. Returns after everything that was started has ended.
[[nodiscard]] DrillResult run_drill(const Drill& drill, DrillConfig config);

}  // namespace pawl::drill
