// ClosedLocks: how many leases that are over keep each lock closed for their DELAY. Few locks are
// closed at a time, so the count is kept here and not in every lock.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "base/assert.h"
#include "core/slab.h"

namespace pawl::core {

class ClosedLocks {
 public:
  // A lease of these locks is over, and keeps its place.
  void add(std::span<const Index> locks) {
    for (const Index lock : locks) ++by_lock_[lock];
    total_ += locks.size();
  }
  // It gave up its place.
  void remove(std::span<const Index> locks) {
    PAWL_ASSERT(total_ >= locks.size());
    total_ -= locks.size();
    for (const Index lock : locks) {
      const auto found = by_lock_.find(lock);
      PAWL_ASSERT(found != by_lock_.end());
      if (--found->second == 0) by_lock_.erase(found);
    }
  }
  // How many of the holders of the lock are over.
  [[nodiscard]] std::uint32_t on(Index lock) const {
    if (by_lock_.empty()) return 0;
    const auto found = by_lock_.find(lock);
    return found == by_lock_.end() ? 0 : found->second;
  }
  // One for each lock of each such lease.
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  std::unordered_map<Index, std::uint32_t> by_lock_;
  std::uint64_t total_ = 0;
};

}  // namespace pawl::core
