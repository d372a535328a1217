// Carries a drill out: makes what it writes to, plays it, judges, and puts everything away.
#pragma once

#include <optional>
#include <string>

#include "drill/drills.h"
#include "drill/record.h"
#include "drill/stage.h"

namespace pawl::drill {

inline constexpr std::string_view kUnguarded = "none";

struct Order {
  // target.resource empty: a scratch resource is made there, under guard in `mode`, or under none
  // (kUnguarded). Else it is the user's own, and `mode` is what its guard is in.
  Setting setting;
  std::uint64_t rounds = 1;
};

// One of the three.
struct Ended {
  std::optional<Record> record = {};  // it was carried out
  std::optional<Error> trouble = {};  // it could not be
  bool interrupted = false;
};

[[nodiscard]] Ended run(const Drill& drill, Order order);

}  // namespace pawl::drill
