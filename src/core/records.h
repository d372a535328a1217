// What the core keeps in the store, byte by byte. Integers are little-endian, texts are u16 length
// + bytes.
//
//   key "T"
//     value u64 the last token granted or raised to. In every batch that grants.
//   key "W"
//     value u64 milliseconds. Of a store that was restored from a backup: nothing is granted until
//           that much service time has passed since a start. Erased then.
//   key "L" + token (u64, big-endian, so that keys sort by token)
//     value u8  version (1)
//           u8  phase: 1 live, 2 breaking, 3 closed (over, keeping its place for its DELAY)
//           u64 u64 lease id   u8 mode   u16 limit   u16 slot
//           u32 ttl ms   u32 waited ms   u32 delay ms
//           u64 max_hold ms   u64 granted, Unix ms   u64 floor
//           text owner   text request (empty = none; "user:id" where there are users)
//           u8 locks, each a text   u8 meta pairs, each two texts
//
// Valid: exactly these bytes and no more, 1–16 locks, a phase and mode of the list. Anything else
// is damage.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lease_terms.h"
#include "base/limits.h"
#include "base/types.h"
#include "core/lease_table.h"
#include "pawl/result.h"

namespace pawl::core {

// One lease as the store has it. Views point into the bytes it was decoded from, or into what it
// was made from.
struct LeaseRecord {
  Token token;  // In the key.
  Phase phase = Phase::kLive;
  LeaseId id;
  LeaseTerms terms;
  std::uint16_t slot = 0;
  std::uint32_t waited_ms = 0;
  UnixMs granted;
  Token floor;
  std::string_view owner;
  std::string_view request;
  LockNames locks;
  std::string_view meta;  // u8 count and the pairs, as in the record; empty = none.
};

// No record of a lease, with its key, takes more in a batch.
inline constexpr std::size_t kLeaseRecordMax = 256 + limits::kOwnerMax + limits::kOwnerMax +
                                               limits::kRequestMax +
                                               limits::kLocksPerLease * (2 + limits::kLockNameMax) +
                                               limits::kMetaBytes + 4 * limits::kMetaPairs;

// --- Keys ----------------------------------------------------------------------------------------
inline constexpr std::string_view kLastTokenKey = "T";
inline constexpr std::string_view kRestoredKey = "W";
// Sorts by token.
[[nodiscard]] std::string lease_key(Token token);
// Whether a key has the form that lease_key() gives; its token may still be out of range.
[[nodiscard]] bool is_lease_key(std::string_view key);
// The token in a key of that form.
[[nodiscard]] Token token_of(std::string_view lease_key);

// --- Values --------------------------------------------------------------------------------------
// The value of the lease's record. Replaces what `out` held.
void encode(const LeaseRecord& record, std::string& out);
// The inverse; kInvalid for anything that no core could have written. Views point into `key` and
// `value`.
[[nodiscard]] Result<LeaseRecord> decode_lease(std::string_view key, std::string_view value);
// The value of kLastTokenKey; kInvalid when it is damaged.
[[nodiscard]] Result<Token> decode_last_token(std::string_view value);
[[nodiscard]] std::string encode_restored(Millis wait);
// The value of kRestoredKey: how long to wait. kInvalid when it is damaged.
[[nodiscard]] Result<Millis> decode_restored(std::string_view value);

// What a store begins with that was restored from a backup in which the last token was `last`
// (design rule 9): no lease of it lives on, the tokens begin a new era, and nothing is granted for
// `wait` (0: at once).
struct RestoredRecords {
  Token last_token;                                          // A multiple of limits::kTokensPerEra.
  std::vector<std::pair<std::string, std::string>> records;  // by key
};
// kInvalid when there is no era left.
[[nodiscard]] Result<RestoredRecords> restored_records(Token last, Millis wait);

// The pairs of LeaseRecord::meta, which must be valid.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> decode_meta(std::string_view meta);

// One line for people (`pawld dump`). Secrets (lease and request ids) are not shown.
[[nodiscard]] std::string describe(std::string_view key, std::string_view value);

}  // namespace pawl::core
