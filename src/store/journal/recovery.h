// Reading the files of a store at start. First what they contain, changing nothing; then the
// repairs that make them ready for new batches.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/file.h"
#include "store/journal/high_water.h"
#include "store/journal/maintenance.h"
#include "store/journal/overlay.h"
#include "store/journal/segment.h"
#include "store/journal/small_files.h"
#include "store/store.h"

namespace pawl::store::journal {

// The segment that new batches are appended to.
struct ActiveSegment {
  SegmentHeader header;
  SegmentEnd end;
};

// Everything that the files of a store contain.
struct Recovered {
  StoredHighWater high_water;
  std::optional<std::uint64_t> checkpoint;
  Overlay overlay;  // What the segments change over the checkpoint.
  ChainPosition chain;
  ActiveSegment active;
  std::vector<ClosedSegment> closed;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spares;  // Id and bytes.
  std::vector<std::uint64_t> obsolete;                          // Segments the checkpoint covers.
  std::vector<std::string> leftovers;  // Names of unfinished files and of older checkpoints.
};

// Reads the store by the rules of format.h. An error names file and offset. Changes nothing.
Result<Recovered> recover(Files& files, const std::string& directory, const Identity& identity);

// Passes every live record to `visitor`. Changes nothing.
Result<void> visit(Files& files, const std::string& directory, const Recovered& recovered,
                   Visitor& visitor);

// Makes what was read durable, overwrites the torn tail with zeros and removes leftovers. A crash
// at any point leaves a directory that recovers to the same state.
Result<Inventory> repair(Files& files, const std::string& directory, const Identity& identity,
                         const Recovered& recovered);

}  // namespace pawl::store::journal
