#include "core/holders.h"

#include <bitset>

#include "base/mutants.h"

namespace pawl::core {

bool Holders::admits(const Lock& lock, const LeaseTerms& terms) const {
  if (lock.holders == 0) return true;
  PAWL_ASSERT(lock.first_holder != kNone);
  if (PAWL_MUTANT(reader_beside_writer) && terms.mode == Mode::kShared) return true;
  const bool held_shared = leases.items[lock.first_holder].mode == Mode::kShared;
  if (held_shared || terms.mode == Mode::kShared) return held_shared && terms.mode == Mode::kShared;
  const std::uint32_t joined = lock.holders + (PAWL_MUTANT(limit_off_by_one) ? 0 : 1);
  if (joined > terms.limit) return false;
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after) {
    work.add();
    if (joined > leases.items[i].limit) return false;
  }
  return true;
}

std::uint16_t Holders::free_slot(const Lock& lock) const {
  if (PAWL_MUTANT(slot_given_twice)) return 0;
  PAWL_ASSERT(lock.holders < limits::kHoldersMax);
  std::bitset<limits::kHoldersMax> used;
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after)
    used.set(leases.items[i].slot);
  work.add(lock.holders);
  std::uint16_t slot = 0;
  while (used.test(slot)) ++slot;
  return slot;
}

bool Holders::slot_taken(const Lock& lock, std::uint16_t slot) const {
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after) {
    if (leases.items[i].slot == slot) return true;
  }
  return false;
}

Token Holders::floor_of(const Lock& lock, Token otherwise) const {
  if (PAWL_MUTANT(floor_is_own_token)) return otherwise;
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after) {
    if (leases.items[i].live()) return leases.items[i].token;
    work.add();
  }
  return otherwise;
}

Index Holders::add_lease(const LeaseRecord& record, std::span<const Index> held, Index request) {
  PAWL_ASSERT(record.token.value != 0 && record.phase != Phase::kUnused);
  PAWL_ASSERT(!held.empty() && held.size() == record.locks.size());
  const Index index = leases.add(record.id);
  Lease& lease = leases.items[index];
  lease.token = record.token;
  lease.granted = record.granted;
  lease.owner = Text(record.owner);
  lease.waited_ms = record.waited_ms;
  lease.lock = held.front();
  lease.slot = record.slot;
  lease.phase = record.phase;
  if (held.size() > 1 || request != kNone || !record.meta.empty() ||
      Extra::needed_for(record.terms)) {
    lease.extra = std::make_unique<Extra>();
    Extra& extra = *lease.extra;
    if (held.size() > 1) extra.locks.assign(held.begin(), held.end());
    extra.request = request;
    extra.floor = record.floor;
    extra.meta = record.meta;
  }
  lease.set_terms(record.terms);
  return index;
}

LeaseRecord Holders::record_of(const Lease& lease) const {
  PAWL_ASSERT(lease.phase != Phase::kUnused);
  LeaseRecord record;
  record.token = lease.token;
  record.phase = lease.phase;
  record.id = lease.id;
  record.terms = lease.terms();
  record.slot = lease.slot;
  record.waited_ms = lease.waited_ms;
  record.granted = lease.granted;
  record.floor = lease.token;
  record.owner = lease.owner.view();
  if (lease.extra != nullptr) {
    record.floor = lease.extra->floor;
    record.meta = lease.extra->meta;
  }
  for (const Index lock : locks_of(lease)) record.locks.push_back(locks.items[lock].name.view());
  return record;
}

Granted Holders::granted(const Lease& lease) const {
  PAWL_ASSERT(lease.live());
  Granted granted{lease.id,     lease.token, lease.token,
                  std::nullopt, lease.ttl(), Millis(lease.waited_ms)};
  if (lease.mode == Mode::kShared) granted.floor = lease.extra->floor;
  if (lease.mode == Mode::kLimit) granted.slot = lease.slot;
  return granted;
}

void Holders::join(Index lock_index, Index index) {
  Lock& lock = locks.items[lock_index];
  Lease& lease = leases.items[index];
  PAWL_ASSERT(lock.in_use());
  // The links of a lease are for one lock; several locks are held exclusively, so none is needed.
  PAWL_ASSERT(lock.holders == 0 || lease.extra == nullptr || lease.extra->locks.empty());
  PAWL_ASSERT(lock.holders == 0 || leases.items[lock.last_holder].token < lease.token);
  if (lock.last_holder != kNone) {
    lease.holder_before = lock.last_holder;
    leases.items[lock.last_holder].holder_after = index;
  } else {
    lock.first_holder = index;
  }
  lock.last_holder = index;
  ++lock.holders;
}

void Holders::leave(Index lock_index, Index index) {
  Lock& lock = locks.items[lock_index];
  Lease& lease = leases.items[index];
  PAWL_ASSERT(lock.holders > 0);
  (lease.holder_before == kNone ? lock.first_holder
                                : leases.items[lease.holder_before].holder_after) =
      lease.holder_after;
  (lease.holder_after == kNone ? lock.last_holder
                               : leases.items[lease.holder_after].holder_before) =
      lease.holder_before;
  --lock.holders;
  PAWL_ASSERT((lock.holders == 0) == (lock.first_holder == kNone));
}

}  // namespace pawl::core
