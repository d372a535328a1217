// LockTable: locks by name, each with the ends of its two lists: the leases that hold it (linked by
// Holders) and the places of its queue (linked by Waiters). A lock that is neither held, closed nor
// waited for does not exist.
#pragma once

#include "core/hash.h"
#include "core/hash_index.h"
#include "core/slab.h"
#include "core/text.h"

namespace pawl::core {

struct Lock {
  Text name;
  // Of the name, so that forgetting does not hash again.
  std::uint32_t hash_low = 0;
  std::uint32_t hash_high = 0;
  // Leases, in order of token; closed ones keep their place.
  Index first_holder = kNone, last_holder = kNone;
  // Places of the queue, in order of arrival.
  Index first_waiter = kNone, last_waiter = kNone;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;

  [[nodiscard]] bool in_use() const { return !name.empty(); }
  [[nodiscard]] std::uint64_t hash() const { return (std::uint64_t{hash_high} << 32) | hash_low; }
};
static_assert(sizeof(Lock) <= 40, "memory per held lock is a promise: see lease_table.h");

class LockTable {
 public:
  // `seed` of hash_bytes().
  explicit LockTable(std::uint64_t seed) : seed_(seed) {}

  // kNone when the lock does not exist.
  [[nodiscard]] Index find(std::string_view name) const {
    return find(name, hash_bytes(name, seed_));
  }
  // A lock that is added must get a holder or a waiter before the input ends. The name is not
  // empty.
  Index find_or_add(std::string_view name) {
    PAWL_ASSERT(!name.empty());
    const std::uint64_t hash = hash_bytes(name, seed_);
    const Index found = find(name, hash);
    return found != kNone ? found : add(name, hash);
  }
  // Only when nobody holds it or waits for it.
  void forget(Index index) {
    PAWL_ASSERT(items[index].in_use());
    PAWL_ASSERT(items[index].holders == 0 && items[index].waiters == 0);
    by_name_.erase(items[index].hash(), index);
    items.remove(index);
  }
  // Room for this many locks in the index.
  void reserve(std::size_t count) { by_name_.reserve(count); }

  Slab<Lock> items;

 private:
  [[nodiscard]] Index find(std::string_view name, std::uint64_t hash) const {
    return by_name_.find(hash, [&](Index i) { return items[i].name.view() == name; });
  }
  Index add(std::string_view name, std::uint64_t hash) {
    const Index index = items.add();
    Lock& lock = items[index];
    lock.name = Text(name);
    lock.hash_low = static_cast<std::uint32_t>(hash);
    lock.hash_high = static_cast<std::uint32_t>(hash >> 32);
    by_name_.insert(hash, index);
    return index;
  }

  HashIndex by_name_;
  std::uint64_t seed_;
};

}  // namespace pawl::core
