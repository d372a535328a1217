// The bytes of a journal directory, and the exact rule for "valid". All numbers are little-endian;
// crc is CRC-32C.
//
//   lock                  flock of the one process that may use the directory; holds its pid
//   store.meta            identity (identity.h); `store.creating` is the same before creation is complete
//   high-water            the reserved end of the numbers in use (high_water.h)
//   checkpoint-<sequence> every live record after the batch <sequence> (checkpoint.h)
//   segment-<id>.log      batches, in order; ids are consecutive and never used again
//   store.restoring       the identity while a restore (restore.h) is under way: nobody else may use the directory
//   machine               the machine it was used on last (machine_file.h)
//   *.tmp                 unfinished work; removed at the next start
//
// Segment: blocks of 4 KiB. Block 0 is the header, zeros (or an older segment's) until the segment
// is begun:
//
//   0 u32 magic "PWLS"     4 u32 crc of bytes 8…4095      8 u32 format version     12 u32 previous crc
//   16 u64 incarnation     24 u64 segment id              32 u64 first sequence    40 u64 bytes in this file
//   48 zeros
//
// Then records, one per batch, each from one block boundary to another:
//
//   0 u32 magic "PWLR"     4 u32 crc of bytes 8…end (padding included)             8 u32 bytes in the batch
//   12 u32 previous crc    16 u64 segment id              24 u64 sequence          32 u64 covered number
//   40 the batch (store.h), zeros up to a multiple of 4 KiB
//
// `previous crc` chains everything: it is the crc field of the record before, or of the header for
// a segment's first record, and in a header that of the last record (or header) of the segment
// before (0 in the very first).
//
// A header is *valid for segment n* when magic, crc and version are right and it names n. A record
// is *valid in segment n* when its magic is right, it names n, its length stays within the file,
// and its crc is right. Since the segment's id is inside the checksum, what a recycled file still
// holds of its former life is never valid.
//
// Reading a segment, from block 1 on: a valid record must carry the expected sequence and previous
// crc, else it is damage. At the first block where no valid record begins, look at every later
// block of the file:
//   - a valid record begins at one of them: damage at the first block (a bad record followed by a
//     good one);
//   - none does, and the next segment is begun: it must continue the chain, else damage at the
//     first block;
//   - none does, and the next segment is not begun: the end. What stands there is zeros, a former
//     life, or
//     the torn last batch, which was never acknowledged. Recovery overwrites it with zeros, durably, before
//     anything else.
// A segment whose header is not valid counts as not begun, unless any record of it is valid or a
// later segment is begun: then that is damage, too. A file shorter than its header says is damage:
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

struct Record {
  RecordHeader header;
  std::string_view batch;
  std::size_t stored_bytes = 0;  // Header, batch and padding.
};

constexpr std::uint64_t round_up_to_block(std::uint64_t bytes) {
  return (bytes + kBlock - 1) / kBlock * kBlock;
}
// What a batch of `batch_bytes` takes in a segment.
constexpr std::uint64_t stored_bytes(std::uint64_t batch_bytes) {
  return round_up_to_block(sizeof(RecordHeader) + batch_bytes);
}

// Fills in magic, version and crc, and writes the kBlock bytes at `block`. Returns the crc.
std::uint32_t encode_segment_header(SegmentHeader header, char* block);
// The header if `block` (at least kBlock bytes) is valid for `segment`.
[[nodiscard]] std::optional<SegmentHeader> decode_segment_header(std::string_view block,
                                                                 std::uint64_t segment);
// The format of a header that would be valid, were it not of a later format.
[[nodiscard]] std::optional<std::uint32_t> newer_segment_format(std::string_view block,
                                                                std::uint64_t segment);

// Fills in magic, length and crc, and writes stored_bytes(batch.size()) bytes at `out`. Returns the
// crc.
std::uint32_t encode_record(RecordHeader header, std::string_view batch, char* out);
// The length of the record of `segment` that what stands at the front of `bytes` claims to be, if
// it does.
[[nodiscard]] std::optional<std::uint32_t> claimed_length(std::string_view bytes,
                                                          std::uint64_t segment);
// Whether it claims to be one, and all of it is there; says nothing about its checksum.
[[nodiscard]] bool looks_like_record(std::string_view bytes, std::uint64_t segment);
// The record at the front of `bytes` (the rest of the segment), if it is valid in `segment`.
[[nodiscard]] std::optional<Record> decode_record(std::string_view bytes, std::uint64_t segment);

// File names, and what they say. Numbers have no leading zeros, so that each file has one name
// only.
inline constexpr std::string_view kIdentityFile = "store.meta";
inline constexpr std::string_view kCreatingFile = "store.creating";
inline constexpr std::string_view kRestoringFile = "store.restoring";
inline constexpr std::string_view kMachineFile = "machine";
inline constexpr std::string_view kBackupFile =
    "backup.meta";  // Of a backup (backup.h), never of a store.
inline constexpr std::string_view kHighWaterFile = "high-water";
[[nodiscard]] std::string segment_name(std::uint64_t segment);
[[nodiscard]] std::string checkpoint_name(std::uint64_t sequence);
[[nodiscard]] std::optional<std::uint64_t> segment_of(std::string_view name);
[[nodiscard]] std::optional<std::uint64_t> checkpoint_of(std::string_view name);
[[nodiscard]] bool is_unfinished(std::string_view name);  // *.tmp
// Whether Pawl writes files of this name at all.
[[nodiscard]] bool is_ours(std::string_view name);
[[nodiscard]] std::string path_in(const std::string& directory, std::string_view name);

// "FILE: offset N: WHAT", for a person who must find it.
[[nodiscard]] Error damage(const std::string& path, std::uint64_t offset, std::string_view what);
// Not damage: a later Pawl wrote it.
[[nodiscard]] Error newer_format(const std::string& path, std::uint32_t version);

}  // namespace pawl::store::journal
