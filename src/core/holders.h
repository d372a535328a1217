// Holders: which leases hold which locks. Owns both tables, and knows the rules by which leases may
// hold a lock together; it knows nothing of queues, of time or of the store.
//
//   if (holders.admits(lock, terms)) {
//     const Index lease = holders.add_lease(record, locks, request);
//     for (const Index lock : locks) holders.join(lock, lease);
//   }
#pragma once

#include <cstdint>
#include <span>

#include "base/lease_terms.h"
#include "core/lease_table.h"
#include "core/lock_table.h"
#include "core/records.h"
#include "core/work_count.h"

namespace pawl::core {

class Holders {
 public:
  explicit Holders(std::uint64_t hash_seed) : locks(hash_seed) {}

  // --- Rules -------------------------------------------------------------------------------------
  // Whether a lease on these terms may hold the lock beside those that hold it now. Readers share
  // with readers only. LIMIT n: as many holders as the least of n and the limits of all holders;
  // exclusive is LIMIT 1. Closed leases count.
  [[nodiscard]] bool admits(const Lock& lock, const LeaseTerms& terms) const;
  // The least slot that no holder has. There must be one: the lock admits one more holder.
  [[nodiscard]] std::uint16_t free_slot(const Lock& lock) const;
  [[nodiscard]] bool slot_taken(const Lock& lock, std::uint16_t slot) const;
  // The smallest live token on the lock; `otherwise`, that of a reader about to join, when there is
  // none.
  [[nodiscard]] Token floor_of(const Lock& lock, Token otherwise) const;

  // --- Leases ------------------------------------------------------------------------------------
  // A new lease as the record says, with `held` (its locks, in the record's order) and `request`
  // (kNone: it has none). It is found by its id, and holds nothing until it joined its locks. No
  // lease may have that id yet.
  Index add_lease(const LeaseRecord& record, std::span<const Index> held, Index request);
  // The inverse, but for `request`, which only the table of requests knows. Views point into the
  // tables.
  [[nodiscard]] LeaseRecord record_of(const Lease& lease) const;
  // The locks of a lease, in the order in which they were named. Valid until it is removed.
  [[nodiscard]] std::span<const Index> locks_of(const Lease& lease) const {
    if (lease.extra != nullptr && !lease.extra->locks.empty()) return lease.extra->locks;
    return {&lease.lock, 1};
  }
  // The answer to the request that this lease was granted to.
  [[nodiscard]] Granted granted(const Lease& lease) const;

  // --- Holding -----------------------------------------------------------------------------------
  // The lease becomes the newest holder of the lock, which admits it. Tokens ascend.
  void join(Index lock, Index lease);
  void leave(Index lock, Index lease);

  LockTable locks;
  LeaseTable leases;
  WorkCount work;  // Holders visited.
};

}  // namespace pawl::core
