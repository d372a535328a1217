// The bytes of the shared log: its head and its entries, and the exact rule for "valid". All
// integers are little-endian; crc is CRC-32C.
//
// The head says who writes, and which entries count. The entries are numbered from 1 without gaps,
// and never change; old ones are deleted.
//
// The head has 224 bytes, always. Every write compares it as a whole and writes the next one
// (rule 12):
//
//   offset  0  u32  magic "PWLH"
//           4  u32  crc of bytes 8 to 223
//           8  u32  format version
//          12  u32  state: 1 active, 2 resigned
//          16  u64  incarnation
//          24  u64  epoch: + 1 with each takeover
//          32  u64  n: + 1 with each write
//          40       writer: 16 random bytes, new with each takeover. After a restore of the log the
//                   same epoch and n can come again with another history
//          56  u64  first entry
//          64  u64  last entry; first - 1 if there is none
//          72  u64  covered number, exact
//          80  u64  sequence of the last batch
//          88  u32  crc of the last entry; 0 before the first one
//          92  u32  bytes of the address
//          96       the address of the active, zeros up to 128 bytes
//
// An entry:
//
//   offset  0  u32  magic "PWLE"
//           4  u32  crc of bytes 8 to the end
//           8  u32  format version
//          12  u32  previous crc: that of the entry before, which may be deleted by now
//          16  u64  incarnation
//          24  u64  epoch
//          32  u64  number
//          40  u64  sequence of the batch
//          48  u32  0
//          52  u32  bytes of carried records
//          56       carried records, then operations of the batch (base/batch.h)
//
// Carried records are live records of older entries, which the same write deletes. They come
// first, because later operations override earlier ones.
//
// The log is valid if the entries from `first` to `last` are all there, each of this incarnation,
// with its own number and a right crc, each but the first with the crc of the one before as its
// previous crc, and the last with the crc in the head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"
#include "pawl/result.h"

namespace pawl::store::cluster {

inline constexpr std::uint32_t kLogVersion = 1;
inline constexpr std::size_t kHeadBytes = 224;
inline constexpr std::size_t kEntryHeaderBytes = 56;

// 128 random bits.
struct Writer {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Writer&) const = default;
};

enum class HeadState : std::uint32_t {
  kActive = 1,
  kResigned = 2,  // Whoever reads it may take over at once.
};

struct Head {
  HeadState state = HeadState::kActive;
  Incarnation incarnation = {};
  std::uint64_t epoch = 0;
  std::uint64_t n = 0;
  Writer writer = {};
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  std::uint64_t covered = 0;
  std::uint64_t sequence = 0;
  std::uint32_t last_crc = 0;
  std::string address =
      {};  // Where clients reach the writer: limits::kEtcdAddressMax bytes at most.
  bool operator==(const Head&) const = default;
  [[nodiscard]] bool same_writer(const Head& other) const {
    return epoch == other.epoch && writer == other.writer;
  }
};

struct EntryHeader {
  std::uint32_t previous_crc = 0;
  Incarnation incarnation = {};
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
  bool operator==(const EntryHeader&) const = default;
};

// As decoded; the views point into the bytes that were decoded.
struct Entry {
  EntryHeader header;
  std::uint32_t crc = 0;
  std::string_view carried;
  std::string_view operations;
};

[[nodiscard]] std::string encode_head(const Head& head);
// kInvalid says what is wrong.
[[nodiscard]] Result<Head> decode_head(std::string_view bytes);

struct EncodedEntry {
  std::string bytes;
  std::uint32_t crc = 0;  // The previous crc of the next entry.
};
[[nodiscard]] EncodedEntry encode_entry(const EntryHeader& header, std::string_view carried,
                                        std::string_view operations);
// kInvalid says what is wrong. Whether the operations can be read is not checked.
[[nodiscard]] Result<Entry> decode_entry(std::string_view bytes);
// All operations of an entry that can be decoded, carried ones first.
[[nodiscard]] inline std::string_view operations_of(std::string_view entry) {
  return entry.substr(kEntryHeaderBytes);
}

}  // namespace pawl::store::cluster
