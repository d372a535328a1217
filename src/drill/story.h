// What a drill shows, told with its first stale write: for someone who never heard of fencing.
#pragma once

#include <string>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

struct Step {
  Moment at{};
  std::string text;  // plain, not escaped
};

struct Story {
  std::vector<Step> steps;  // in order of time
  std::string
      rest;  // what became of the stale writes that the steps do not tell of; empty: there is none
};

// Told of a stale write that got through, if one did; else of one that was refused; else of one
// that was not sent. Without a stale write there is nothing to tell.
[[nodiscard]] Story story_of(const Record& record);

}  // namespace pawl::drill
