// One segment file: reading all its records by the rules of format.h, and appending to it.
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

// Where the chain of records stands: what the next record must carry.
struct ChainPosition {
  std::uint64_t next_sequence = 1;
  std::uint32_t crc = 0;
  bool operator==(const ChainPosition&) const = default;
};

// A segment that is full, and where the chain stood at its end.
struct ClosedSegment {
  std::uint64_t segment = 0;
  ChainPosition end;
  // How much of the file to read; 0 = all. Of a segment that is still written to, what was durable
  // at `end`.
  std::uint64_t bytes = 0;
};

// What can be told of a segment without its records.
struct SegmentFacts {
  std::uint64_t bytes = 0;              // Size of the file.
  std::optional<SegmentHeader> header;  // Set when the segment is begun.
};
// Damage when the file is too short to be a segment, shorter than its header says, or holds a valid
// record under a header that is not valid. `expected_bytes`: the least size of a segment that is
// not begun.
Result<SegmentFacts> probe_segment(Files& files, const std::string& path, std::uint64_t segment,
                                   std::uint64_t expected_bytes);

// A begun segment must belong to this store and go on where the one before ended.
Result<void> check_header(const std::string& path, const SegmentHeader& header,
                          Incarnation incarnation, const ChainPosition& chain);

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Where a segment's records end, and what stands there.
struct SegmentEnd {
  std::uint64_t offset = 0;  // Of the first block that begins no valid record.
  std::vector<Range>
      leftovers;  // Blocks after it that are not zeros: torn, or of the file's former life.
};

using OnRecord = std::function<Result<void>(const Record&)>;

// Reads segments one after another into one buffer.
class SegmentReader {
 public:
  explicit SegmentReader(Files& files) : files_(files) {}

  // Calls `on_record` for each record of a begun segment, and moves `chain` along. `path` is named
  // in errors.
  Result<SegmentEnd> replay(const std::string& path, const SegmentHeader& header,
                            ChainPosition& chain, const OnRecord& on_record);

 private:
  Result<std::string_view> read(const std::string& path, std::uint64_t bytes);

  Files& files_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t buffer_bytes_ = 0;
};

// Memory that O_DIRECT accepts; grows, never shrinks.
class AlignedBuffer {
 public:
  // At least `bytes` bytes, their content undefined after growth.
  char* reserve(std::size_t bytes);

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> memory_;
  std::size_t bytes_ = 0;
};

// Appends records to one begun segment. Any error leaves it unusable.
class SegmentWriter {
 public:
  // Writes the header: `file` becomes segment `header.segment`. The caller fills in all but magic,
  // version and crc.
  static Result<SegmentWriter> begin(std::unique_ptr<File> file, const SegmentHeader& header,
                                     AlignedBuffer& buffer, ChainPosition& chain);
  // Goes on after the record that ends at `offset`.
  static SegmentWriter resume(std::unique_ptr<File> file, const SegmentHeader& header,
                              std::uint64_t offset);

  [[nodiscard]] std::uint64_t segment() const { return segment_; }
  // Where the next record goes: all before it is durable.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] bool fits(std::size_t batch_bytes) const {
    return stored_bytes(batch_bytes) <= bytes_ - offset_;
  }
  // Durable when it returns.
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
