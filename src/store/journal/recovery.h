// Reading a store's files at start: what they say (changing nothing), and then making them fit to
// go on from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/file.h"
#include "store/journal/high_water.h"
#include "store/journal/housekeeper.h"
#include "store/journal/identity.h"
#include "store/journal/overlay.h"
#include "store/journal/segment.h"
#include "store/store.h"

namespace pawl::store::journal {

// The segment that batches go to.
struct ActiveSegment {
  SegmentHeader header;
  SegmentEnd end;
};

// All that the files say.
struct Recovered {
  HighWater high_water;
  std::optional<std::uint64_t> checkpoint;
  Overlay overlay;  // What the segments change over the checkpoint.
  ChainPosition chain;
  ActiveSegment active;
  std::vector<ClosedSegment> closed;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spares;  // Id and bytes.
  std::vector<std::uint64_t> obsolete;  // Segments that the checkpoint covers.
  std::vector<std::string> leftovers;   // Names of unfinished files and older checkpoints.
};

// Judges by the rules of format.h. An error names file and offset. Changes nothing.
Result<Recovered> recover(Files& files, const std::string& directory, const Identity& identity);

// Shows every live record to `visitor`. Changes nothing.
Result<void> visit(Files& files, const std::string& directory, const Recovered& recovered,
                   Visitor& visitor);

// Makes what was read durable, wipes the torn tail and removes leftovers. A crash anywhere in it
// leaves a directory that recovers to the same state.
Result<Inventory> repair(Files& files, const std::string& directory, const Identity& identity,
                         const Recovered& recovered);

// What a store holds when it is created.
struct Beginning {
  std::uint64_t sequence = 0;    // Of the batch before the first.
  std::uint64_t high_water = 0;  // Numbers go on above it.
  // By key, each once; none = an empty store.
  std::vector<std::pair<std::string, std::string>> records;
  // kCreatingFile or kRestoringFile: what stands for the store until it is complete.
  std::string_view marker = kCreatingFile;
};

// Creates a store in a directory that is locked and holds none. A crash before its last step leaves
// a directory with the marker, and so one that classify() does not call a store.
Result<Identity> create_store(Files& files, const std::string& directory, const Identity& identity,
                              const Beginning& beginning = {});

}  // namespace pawl::store::journal
