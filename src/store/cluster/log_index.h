// Which entry of the log holds each live record, and when and what to clean. The log has no
// checkpoints: instead the next transaction carries the live records of the oldest entries, and
// deletes these entries.
//
//   LogIndex index(head.first);
//   index.add(number, bytes of the entry, operations);       // every entry, in order
//   if (index.wants_cleaning()) {
//     const CleaningPlan plan = index.plan();
//     read the entries [index.first(), plan.first) back, and carry of each operation that is_live()
//   }
//   index.drop_before(plan.first);                           // once the transaction has applied
//
// Strictly the oldest first: so a deletion need not be kept once its entry is the oldest, because
// no older entry can have what it deletes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/limits.h"

namespace pawl::store::cluster {

// Entries of the log that are read at once, or deleted.
inline constexpr std::uint64_t kEntriesAtOnce = 64;

struct CleaningLimits {
  // Bytes of the log beyond twice those of its live records.
  std::uint64_t slack_bytes = 8 * 1024 * 1024;
  // Entries, beside one for each 16 KiB of live records. A million entries of one record each would
  // load as slowly as a million keys.
  std::uint64_t entries_free = 4096;
  // What one write carries, unless a single entry has more, and the entries that it deletes.
  std::uint64_t carried_max = limits::kEtcdCarriedMax;
  std::uint64_t entries_max = kEntriesAtOnce;
};

struct CleaningPlan {
  std::uint64_t first = 0;          // The first entry that stays.
  std::uint64_t carried_bytes = 0;  // What the entries before it have that is live.
};

class LogIndex {
 public:
  explicit LogIndex(std::uint64_t first, const CleaningLimits& limits = {})
      : limits_(limits), first_(first) {}

  // The next entry: `bytes` is its size, and `operations` what it has, carried records first.
  void add(std::uint64_t number, std::uint64_t bytes, std::string_view operations);
  // Whether the record of this key is the one in entry `number`.
  [[nodiscard]] bool is_live(std::uint64_t number, std::string_view key) const;

  // More than half of the log is dead, or it has so many small entries that loading it takes long.
  [[nodiscard]] bool wants_cleaning() const;
  // So much so that nothing should be added before some of it is cleaned.
  [[nodiscard]] bool must_be_cleaned() const;
  // The oldest entries, within the limits; at least one, and never the last.
  [[nodiscard]] CleaningPlan plan() const;
  // Whether an entry before `first` still has a live record.
  [[nodiscard]] bool any_live_before(std::uint64_t first) const;
  // The entries before `first` are deleted; their live records were carried, so none is live there.
  void drop_before(std::uint64_t first);

  [[nodiscard]] const CleaningLimits& limits() const { return limits_; }
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t entries() const { return uses_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t live_bytes() const { return live_; }

 private:
  struct Use {
    std::uint64_t bytes = 0;
    std::uint64_t live = 0;
  };
  struct Place {
    std::uint64_t number = 0;
    std::uint32_t bytes = 0;  // Of the operation.
  };
  [[nodiscard]] Use& use_of(std::uint64_t number) { return uses_[number - first_]; }
  void forget(const Place& place);

  // Whether the log is beyond so many times its limits.
  [[nodiscard]] bool is_beyond(std::uint64_t times) const;

  CleaningLimits limits_;
  std::uint64_t first_;
  std::deque<Use> uses_;  // Of the entries from first_ on.
  std::unordered_map<std::string, Place> places_;
  std::uint64_t bytes_ = 0;
  std::uint64_t live_ = 0;
};

}  // namespace pawl::store::cluster
