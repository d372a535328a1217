// Reads all of a store or of a backup, by the same rules as a start, and changes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"
#include "store/file.h"
#include "store/store.h"

namespace pawl::store::journal {

struct Verified {
  bool backup = false;
  Incarnation incarnation;
  std::uint64_t sequence = 0;    // Of the last batch.
  std::uint64_t high_water = 0;  // Every number used is <= this.
  // `high_water` itself was used: true for a backup and for a store that was closed cleanly.
  bool exact = false;
  // The files that were read, and the bytes in them.
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

// Passes every live record to `visitor`. An error names the file and, if it is damaged, the offset.
// kBusy while a process uses the store: a batch that it is writing would look torn.
Result<Verified> verify(Files& files, const std::string& directory, Visitor& visitor);

}  // namespace pawl::store::journal
