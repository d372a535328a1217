// What a user may choose about the journal.
#pragma once

#include <cstdint>

#include "store/journal/format.h"

namespace pawl::store::journal {

struct Settings {
  // Of a store that is created now (an existing one keeps its own); a multiple of 4 KiB, at least
  // kSegmentBytesMin.
  std::uint64_t segment_bytes = kSegmentBytesDefault;
  // Segments prewritten ahead. With 0 every switch prewrites inline, which stalls the loop.
  std::size_t spare_segments = 2;
  // Closed segments that make a new checkpoint worth its while. A restart replays about as many.
  std::size_t checkpoint_after = 3;
  // Free space below which has_room() is false.
  std::uint64_t space_reserve = std::uint64_t{64} << 20;
  // Refuse a directory that is missing or empty instead of creating a store: a volume may not be
  // mounted (hard case 40).
  bool must_exist = false;
};

}  // namespace pawl::store::journal
