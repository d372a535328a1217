// Waiters: who is in line, and where. One waiter stands in the queue of every lock it named, and
// holds none.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/lease_terms.h"
#include "base/types.h"
#include "core/lock_table.h"
#include "core/slab.h"
#include "core/text.h"
#include "core/timer_wheel.h"

namespace pawl::core {

// One waiter's place in one lock's queue.
struct Place {
  Index waiter = kNone;
  Index lock = kNone;
  Index before = kNone, after = kNone;
};

struct Waiter {
  WaiterId id;
  LeaseId candidate;
  Tick arrived{};  // The receipt that queued this wait; a retry keeps it.
  Tick gives_up = kNever;
  TimerLink timer;
  std::vector<Index> places;
  Text owner;
  std::string meta;
  Index request = kNone;
  LeaseTerms terms;
};

class WaiterTable {
 public:
  Index add(WaiterId id) {
    const Index index = items.add();
    items[index].id = id;
    by_id_.emplace(id, index);
    return index;
  }
  [[nodiscard]] Index find(WaiterId id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? kNone : found->second;
  }
  // The newest connection owns the wait.
  void rename(Index index, WaiterId id) {
    by_id_.erase(items[index].id);
    items[index].id = id;
    by_id_.emplace(id, index);
  }
  // It must stand in no queue any more.
  void remove(Index index) {
    by_id_.erase(items[index].id);
    items.remove(index);
  }

  void join(Index waiter, Index lock_index, Lock& lock) {
    const Index at = places.add();
    Place& place = places[at];
    place.waiter = waiter;
    place.lock = lock_index;
    place.before = lock.last_waiter;
    (lock.last_waiter == kNone ? lock.first_waiter : places[lock.last_waiter].after) = at;
    lock.last_waiter = at;
    ++lock.waiters;
    items[waiter].places.push_back(at);
  }
  void leave(Index at, Lock& lock) {
    const Place place = places[at];
    (place.before == kNone ? lock.first_waiter : places[place.before].after) = place.after;
    (place.after == kNone ? lock.last_waiter : places[place.after].before) = place.before;
    --lock.waiters;
    places.remove(at);
  }
  // 1 = at the head.
  [[nodiscard]] std::uint64_t position(Index at) const {
    std::uint64_t count = 1;
    for (Index i = places[at].before; i != kNone; i = places[i].before) ++count;
    return count;
  }

  Slab<Waiter> items;
  Slab<Place> places;

 private:
  std::unordered_map<WaiterId, Index> by_id_;
};

}  // namespace pawl::core
