// Reads all of a store or of a backup, by the very rules of a start, and changes nothing.
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
  bool exact = false;  // This very number was used: a backup, or a store that was closed cleanly.
  std::uint64_t files = 0;  // That were read.
  std::uint64_t bytes = 0;  // In them.
};

// Shows every live record to `visitor`. An error names the file, and where it is damaged the
// offset. Not while a process uses the store (kBusy): what it is about to write would look torn.
Result<Verified> verify(Files& files, const std::string& directory, Visitor& visitor);

}  // namespace pawl::store::journal
