// The bytes of Pawl's log in etcd, and the exact rule for "valid". All integers are little-endian;
// crc is CRC-32C.
//
//   <prefix>head            the head: who writes, and which entries count
//   <prefix>log/<16 hex>    the entries, numbered from 1 without gaps; they never change
//
// The head has 224 bytes, always. Every transaction compares it as a whole and writes the next one
// (rule 12):
//
//   offset  0  u32  magic "PWLH"
//           4  u32  crc of bytes 8 to 223
//           8  u32  format version
//          12  u32  state: 1 active, 2 resigned, 3 closed
//          16  u64  incarnation
//          24  u64  epoch: + 1 with each takeover
//          32  u64  n: + 1 with each transaction
//          40       writer: 16 random bytes, new with each takeover. After a restore of etcd the
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
//          48  u32  flags: 1, more entries of this batch follow
//          52  u32  bytes of carried records
//          56       carried records, then operations of the batch (base/batch.h)
//
// Carried records are live records of older entries, which the same transaction deletes. They come
// first, because later operations override earlier ones.
//
// A *group* is the entries of one batch: all but the last have the flag. The log is valid if the
// entries from `first` to `last` are all there, each of this incarnation, with its own number and a
// right crc, each but the first with the crc of the one before as its previous crc, the last with
// the crc in the head; and if a group ends before another one begins, unless the other one has a
// greater epoch. A group that does not end was never acknowledged: its operations do not count. Its
// carried records do: the entries that they come from are deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "etcd/messages.h"
#include "pawl/result.h"

namespace pawl::etcd {

inline constexpr std::uint32_t kLogVersion = 1;
inline constexpr std::size_t kHeadBytes = 224;
inline constexpr std::size_t kEntryHeaderBytes = 56;

// 128 random bits.
struct Writer {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Writer&) const = default;
};

enum class HeadState : std::uint32_t { kActive = 1, kResigned = 2, kClosed = 3 };

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
  std::string address = {};  // At most limits::kEtcdAddressMax bytes.
  bool operator==(const Head&) const = default;
};

struct EntryHeader {
  std::uint32_t previous_crc = 0;
  Incarnation incarnation = {};
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
  bool more = false;
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

// Cuts the operations of a batch into pieces of at most `piece_max` bytes, between operations. An
// operation that is larger is a piece of its own; one piece, empty, if there are none.
[[nodiscard]] std::vector<std::string_view> split_operations(std::string_view operations,
                                                             std::size_t piece_max);

// --- Keys ----------------------------------------------------------------------------------------

[[nodiscard]] std::string head_key(std::string_view prefix);
[[nodiscard]] std::string entry_key(std::string_view prefix, std::uint64_t number);
// The number in the key; nothing if it is not the key of an entry.
[[nodiscard]] std::optional<std::uint64_t> entry_number(std::string_view prefix,
                                                        std::string_view key);
// The deletion of every entry before `first`.
[[nodiscard]] DeleteRangeRequest delete_entries_before(std::string_view prefix,
                                                       std::uint64_t first);
// Bounded ranges, `window` entries each, that read the entries from `first` to `last` as they were
// at `revision`. Not by limit: etcd counts all the keys that a limit leaves out, each time.
[[nodiscard]] std::vector<RangeRequest> entry_windows(std::string_view prefix, std::uint64_t first,
                                                      std::uint64_t last, std::uint64_t window,
                                                      std::int64_t revision);

}  // namespace pawl::etcd
