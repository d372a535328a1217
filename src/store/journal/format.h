// The bytes of a journal directory, and the exact rule for "valid". All integers are little-endian;
// crc is CRC-32C.
//
//   lock                   flock of the one process that may use the directory; holds its pid
//   store.meta             the identity of the store (small_files.h)
//   store.creating         the same, until the creation of the store is complete
//   store.restoring        the same, until a restore is complete (create.h)
//   high-water             the end of the numbers that may be in use (high_water.h)
//   machine                the machine that used the store last (small_files.h)
//   checkpoint-<sequence>  every live record after the batch <sequence> (checkpoint.h)
//   segment-<id>.log       batches, in order; ids are consecutive and never used again
//   *.tmp                  unfinished work; removed at the next start
//
// A segment consists of blocks of 4 KiB. Block 0 is the header. It is zeros, or the header of an
// older segment, until the segment is begun:
//
//   offset  0  u32  magic "PWLS"
//           4  u32  crc of bytes 8 to 4095
//           8  u32  format version
//          12  u32  previous crc
//          16  u64  incarnation
//          24  u64  segment id
//          32  u64  first sequence
//          40  u64  bytes in this file
//          48       zeros
//
// Then come records, one per batch, each padded to whole blocks:
//
//   offset  0  u32  magic "PWLR"
//           4  u32  crc of bytes 8 to the end, padding included
//           8  u32  bytes in the batch
//          12  u32  previous crc
//          16  u64  segment id
//          24  u64  sequence
//          32  u64  covered number
//          40       the batch (base/batch.h), zeros up to a multiple of 4 KiB
//
// `previous crc` chains everything. In a record it is the crc field of the record before, or of the
// header for the first record of a segment. In a header it is that of the last record (or header)
// of the segment before, and 0 in the very first.
//
// A header is *valid for segment n* if magic, crc and version are right and it names n. A record is
// *valid in segment n* if its magic is right, it names n, its length stays within the file, and its
// crc is right. The segment id is covered by the checksum, so the old records in a recycled file
// are never valid.
//
// Reading a segment, from block 1 on: a valid record must carry the expected sequence and previous
// crc, otherwise that is damage. At the first block where no valid record begins, every later block
// of the file is examined:
//
//   - A valid record begins at one of them: damage at the first block (a bad record followed by a
//     good one).
//   - None does, and the next segment is begun: it must continue the chain, otherwise damage at the
//     first block.
//   - None does, and the next segment is not begun: this is the end. What follows is zeros, old
//     records of a recycled file, or the torn last batch, which was never acknowledged. Recovery
//     overwrites it with zeros, durably, before anything else.
//
// A segment whose header is not valid counts as not begun, unless one of its records is valid or a
// later segment is begun; then that is damage. A file shorter than its header says is damage:
// segments have their full size before use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "store/file.h"

namespace pawl::store::journal {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint64_t kSegmentBytesMin = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kSegmentBytesDefault = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kFirstSegment = 1;

struct SegmentHeader {
  std::uint32_t magic = 0;
  std::uint32_t crc = 0;
  std::uint32_t version = 0;
  std::uint32_t previous_crc = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t segment = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(SegmentHeader) == 48);

struct RecordHeader {
  std::uint32_t magic = 0;
  std::uint32_t crc = 0;
  std::uint32_t length = 0;
  std::uint32_t previous_crc = 0;
  std::uint64_t segment = 0;
  std::uint64_t sequence = 0;
  std::uint64_t covered = 0;
};
static_assert(sizeof(RecordHeader) == 40);

// One record, as decoded. `batch` points into the bytes that were decoded.
struct BatchRecord {
  RecordHeader header;
  std::string_view batch;
  std::size_t stored_bytes = 0;  // Header, batch and padding.
};

constexpr std::uint64_t round_up_to_block(std::uint64_t bytes) {
  return (bytes + kBlock - 1) / kBlock * kBlock;
}
// The bytes that a batch of `batch_bytes` takes in a segment.
constexpr std::uint64_t stored_bytes(std::uint64_t batch_bytes) {
  return round_up_to_block(sizeof(RecordHeader) + batch_bytes);
}

// Fills in magic, version and crc, and writes kBlock bytes to `block`. Returns the crc.
std::uint32_t encode_segment_header(SegmentHeader header, char* block);
// Returns the header if `block` (at least kBlock bytes) is valid for `segment`.
[[nodiscard]] std::optional<SegmentHeader> decode_segment_header(std::string_view block,
                                                                 std::uint64_t segment);
// Returns the format version if the header would be valid, but is of a later format.
[[nodiscard]] std::optional<std::uint32_t> newer_segment_format(std::string_view block,
                                                                std::uint64_t segment);

// Fills in magic, length and crc, and writes stored_bytes(batch.size()) bytes to `out`. Returns the
// crc.
std::uint32_t encode_record(RecordHeader header, std::string_view batch, char* out);
// Returns the length field if `bytes` begins like a record of `segment`. Its checksum is not
// checked.
[[nodiscard]] std::optional<std::uint32_t> claimed_length(std::string_view bytes,
                                                          std::uint64_t segment);
// Whether `bytes` begins like a record of `segment` and holds all of it. Its checksum is not
// checked.
[[nodiscard]] bool looks_like_record(std::string_view bytes, std::uint64_t segment);
// Returns the record at the front of `bytes` (the rest of the segment), if it is valid in
// `segment`.
[[nodiscard]] std::optional<BatchRecord> decode_record(std::string_view bytes,
                                                       std::uint64_t segment);

// File names. Numbers have no leading zeros, so that each file has exactly one name.
inline constexpr std::string_view kIdentityFile = "store.meta";
inline constexpr std::string_view kCreatingFile = "store.creating";
inline constexpr std::string_view kRestoringFile = "store.restoring";
inline constexpr std::string_view kMachineFile = "machine";
// In a backup (backup.h), never in a store.
inline constexpr std::string_view kBackupFile = "backup.meta";
inline constexpr std::string_view kHighWaterFile = "high-water";
[[nodiscard]] std::string segment_name(std::uint64_t segment);
[[nodiscard]] std::string checkpoint_name(std::uint64_t sequence);
// The number in the name; nothing if it is not such a name.
[[nodiscard]] std::optional<std::uint64_t> segment_of(std::string_view name);
[[nodiscard]] std::optional<std::uint64_t> checkpoint_of(std::string_view name);
// The name of one of Pawl's files with .tmp appended.
[[nodiscard]] bool is_unfinished(std::string_view name);
// Whether Pawl writes files of this name.
[[nodiscard]] bool is_pawl_file(std::string_view name);
[[nodiscard]] std::string path_in(const std::string& directory, std::string_view name);

// kInvalid, "FILE: offset N: WHAT".
[[nodiscard]] Error damage(const std::string& path, std::uint64_t offset, std::string_view what);
// kInvalid: not damaged, but written by a newer Pawl.
[[nodiscard]] Error newer_format(const std::string& path, std::uint32_t version,
                                 std::uint32_t known = kFormatVersion);

}  // namespace pawl::store::journal
