// The settings of a journal ([journal] in the configuration file).
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/journal/format.h"

namespace pawl::store::journal {

struct Settings {
  // The size of a segment in a store that is created now; an existing store keeps its own. A
  // multiple of 4 KiB, at least kSegmentBytesMin.
  std::uint64_t segment_bytes = kSegmentBytesDefault;
  // How many segments are prewritten ahead. With 0 every switch to a new segment prewrites it
  // inline, which stalls the loop.
  std::size_t spare_segments = 2;
  // A checkpoint is made when this many segments are closed. A restart replays about as many.
  std::size_t checkpoint_after = 3;
  // has_room() is false while less than this is free, in bytes.
  std::uint64_t space_reserve = std::uint64_t{64} << 20;
  // Refuse a directory that is missing or empty instead of creating a store: a volume may not be
  // mounted (hard case 40).
  bool must_exist = false;
};

}  // namespace pawl::store::journal
