// The high water: the greatest number (token) that may have been used, kept apart from the records
// so that even a lost tail of them can never lead to a number being used twice (design rule 10).
#pragma once

#include <cstdint>

#include "store/file.h"

namespace pawl::store::journal {

struct HighWater {
  std::uint64_t end = 0;  // Every number used is <= end.
  std::uint64_t sequence =
      0;  // The last batch that was durable when this was written: fewer on load is damage.
  bool clean = false;  // Written by close(): `end` and `sequence` are exact.
};

// Durable when it returns (small_file.h).
Result<void> write_high_water(Files& files, const std::string& directory,
                              const HighWater& high_water);
Result<HighWater> read_high_water(Files& files, const std::string& directory);

}  // namespace pawl::store::journal
