// The high-water file: the greatest number (token) that may have been used. It is kept apart from
// the records, so that even if the last records are lost no number is used twice (design rule 10).
//
// The file has two slots of one block (4 KiB) each. A new value is written to both, one after the
// other, in place and durably, so that a reservation needs neither space nor an inode nor a file
// descriptor. A write that is torn or fails leaves the other slot as it was.
//
//   offset  0  8 letters "PAWLHIGH"
//           8  u32  version, 2
//          12  u64  end
//          20  u64  sequence
//          28  u8   clean
//          29  u64  number: of the value: it grows
//          37  u32  crc of bytes 0 to 36
//          41       zeros
//
// A slot is valid if magic, version and crc are right. The valid slot with the greater number
// counts. Neither is valid: damage. One that is not valid beside a valid one is never fatal: it is
// torn, and nothing was based on it, or it was damaged, and the other has the same value.
//
// Version 1 was one small file (small_files.h) with the body u64 end, u64 sequence, u8 clean. It is
// read, and replaced by a file with slots at the first start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/file.h"
#include "store/journal/segment.h"

namespace pawl::store::journal {

struct HighWater {
  // Every number used is <= end.
  std::uint64_t end = 0;
  // The last batch that was durable when this was written. If fewer are found, that is damage.
  std::uint64_t sequence = 0;
  // Written by close(): `end` and `sequence` are exact.
  bool clean = false;
};

// What the file says.
struct StoredHighWater {
  HighWater value;
  std::uint64_t number = 0;
  // Where it is; nothing in a file of version 1.
  std::optional<unsigned> slot;
};

// Creates the file with one valid slot. Durable, and complete or absent after a crash.
Result<void> create_high_water(Files& files, const std::string& directory,
                               const HighWater& high_water);

// An error names the file: missing, damaged, or written by a newer Pawl.
Result<StoredHighWater> read_high_water(Files& files, const std::string& directory);

// The file, open for writing.
class HighWaterFile {
 public:
  // Opens a file that holds `stored`, and writes that again: what was read may be in the page cache
  // only, and then a sync alone would not make it durable. Replaces a file of version 1.
  static Result<HighWaterFile> open(Files& files, const std::string& directory,
                                    const StoredHighWater& stored);

  // Durable when it returns. After kUnavailable the old value still counts, and write() may be
  // called again.
  Result<void> write(const HighWater& high_water);

 private:
  HighWaterFile(std::unique_ptr<File> file, const StoredHighWater& stored)
      : file_(std::move(file)), number_(stored.number), slot_(*stored.slot) {}
  Result<void> write_slot(unsigned slot, const HighWater& high_water, std::uint64_t number);

  std::unique_ptr<File> file_;
  AlignedBuffer buffer_;
  std::uint64_t number_;  // Of the last write that was tried.
  unsigned slot_;         // The one that counts.
};

}  // namespace pawl::store::journal
