// One segment file: reading all its records by the rules of format.h, and appending records to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "store/file.h"
#include "store/journal/format.h"

namespace pawl::store::journal {

// The position in the chain of records: what the next record must carry.
struct ChainPosition {
  std::uint64_t next_sequence = 1;
  std::uint32_t crc = 0;
  bool operator==(const ChainPosition&) const = default;
};

// A segment that no batch is appended to any more, and the chain at its end.
struct ClosedSegment {
  std::uint64_t segment = 0;
  ChainPosition end;
  // How much of the file to read; 0 = all. For the active segment of a backup: the part that was
  // durable at `end`.
  std::uint64_t bytes = 0;
};

// What is known of a segment without reading its records.
struct SegmentFacts {
  std::uint64_t bytes = 0;              // Size of the file.
  std::optional<SegmentHeader> header;  // Set if the segment is begun.
};
// Damage if the file is too short to be a segment, shorter than its header says, or holds a valid
// record although its header is not valid. `expected_bytes` is the minimum size of a segment that
// is not begun.
Result<SegmentFacts> probe_segment(Files& files, const std::string& path, std::uint64_t segment,
                                   std::uint64_t expected_bytes);

// Checks that a begun segment belongs to this store and continues where the one before ended.
Result<void> check_header(const std::string& path, const SegmentHeader& header,
                          Incarnation incarnation, const ChainPosition& chain);

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// The end of the records of a segment.
struct SegmentEnd {
  std::uint64_t offset = 0;  // Of the first block where no valid record begins.
  ByteRange last;            // The last record, or the header if there is none.
  // What is not zeros after it: a torn batch, or old records of a recycled file.
  std::vector<ByteRange> leftovers;
};

using OnRecord = std::function<Result<void>(const BatchRecord&)>;

// Reads segments one after another into one buffer.
class SegmentReader {
 public:
  explicit SegmentReader(Files& files) : files_(files) {}

  // Calls `on_record` for each record of a begun segment and advances `chain`. Errors name `path`.
  Result<SegmentEnd> replay(const std::string& path, const SegmentHeader& header,
                            ChainPosition& chain, const OnRecord& on_record);

 private:
  Result<std::string_view> read(const std::string& path, std::uint64_t bytes);

  Files& files_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t buffer_bytes_ = 0;
};

// Memory that O_DIRECT accepts: aligned to kBlock. It grows and never shrinks.
class AlignedBuffer {
 public:
  // Returns at least `bytes` bytes, whose content is undefined after growth.
  char* reserve(std::size_t bytes);

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> memory_;
  std::size_t bytes_ = 0;
};

// Appends records to one begun segment. After an error, which is never kUnavailable, it must not be
// used again: some of the bytes may be on the disk.
class SegmentWriter {
 public:
  // Begins the segment: writes the header to `file`. The caller fills in all of `header` except
  // magic, version and crc.
  static Result<SegmentWriter> begin(std::unique_ptr<File> file, const SegmentHeader& header,
                                     AlignedBuffer& buffer, ChainPosition& chain);
  // Continues a segment after the record that ends at `offset`.
  static SegmentWriter resume(std::unique_ptr<File> file, const SegmentHeader& header,
                              std::uint64_t offset);

  [[nodiscard]] std::uint64_t segment() const { return segment_; }
  // The offset of the next record; everything before it is durable.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] bool fits(std::size_t batch_bytes) const {
    return stored_bytes(batch_bytes) <= bytes_ - offset_;
  }
  // Appends one batch, which must fit, and advances `chain`. Durable when it returns.
  Result<void> append(std::string_view batch, std::uint64_t covered, AlignedBuffer& buffer,
                      ChainPosition& chain);

 private:
  SegmentWriter(std::unique_ptr<File> file, const SegmentHeader& header, std::uint64_t offset)
      : file_(std::move(file)), segment_(header.segment), bytes_(header.bytes), offset_(offset) {}

  std::unique_ptr<File> file_;
  std::uint64_t segment_;
  std::uint64_t bytes_;
  std::uint64_t offset_;
};

}  // namespace pawl::store::journal
