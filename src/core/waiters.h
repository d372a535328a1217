// Waiters: the requests that wait, and the queue of each lock. One waiter stands in the queue of
// every lock it named, and holds none of them meanwhile (G6).
#pragma once

#include <algorithm>
#include <cstdint>
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

// One waiter's place in the queue of one lock.
struct QueuePlace {
  Index waiter = kNone;
  Index lock = kNone;
  Index before = kNone, after = kNone;  // Places in the same queue.
};

struct Waiter {
  WaiterId id;
  LeaseId candidate;  // The id of its lease, should it be granted.
  Tick arrived{};     // The receipt that queued this wait; a retry keeps it.
  Tick gives_up = kNever;
  TimerLink timer;
  std::vector<Index> places;  // One per lock, in the order in which they were named.
  LeaseTerms terms;
  Text owner;
  std::string meta;  // As in the record.
  Index request = kNone;
};

class Waiters {
 public:
  // `locks` must outlive this.
  explicit Waiters(LockTable& locks) : timers_(items), locks_(locks) {}
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  // A new waiter that stands in no queue yet. No other may have this id.
  Index add(WaiterId id) {
    const Index waiter = items.add();
    items[waiter].id = id;
    const bool is_new = by_id_.emplace(id, waiter).second;
    PAWL_ASSERT(is_new);
    return waiter;
  }
  // kNone when nobody waits with this id.
  [[nodiscard]] Index find(WaiterId id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? kNone : found->second;
  }
  // From now on the wait is answered to `id`, which no other waiter has: the newest connection owns
  // a wait.
  void reassign(Index waiter, WaiterId id) {
    by_id_.erase(items[waiter].id);
    items[waiter].id = id;
    const bool is_new = by_id_.emplace(id, waiter).second;
    PAWL_ASSERT(is_new);
  }
  // It must stand in no queue any more.
  void remove(Index waiter) {
    PAWL_ASSERT(items[waiter].places.empty() && items[waiter].timer.slot == 0);
    by_id_.erase(items[waiter].id);
    items.remove(waiter);
  }

  // --- Queues ------------------------------------------------------------------------------------
  // Behind all others that wait for the lock.
  void join(Index waiter, Index lock) {
    Lock& queue = locks_.items[lock];
    PAWL_ASSERT(queue.in_use());
    const Index at = places.add();
    QueuePlace& place = places[at];
    place.waiter = waiter;
    place.lock = lock;
    place.before = queue.last_waiter;
    (queue.last_waiter == kNone ? queue.first_waiter : places[queue.last_waiter].after) = at;
    queue.last_waiter = at;
    ++queue.waiters;
    items[waiter].places.push_back(at);
  }
  // Out of every queue it stands in, without waiting any longer. Appends the locks it waited for to
  // `left`, in the order in which they were named.
  template <class List>
  void leave_all(Index waiter, List& left) {
    timers_.disarm(waiter);
    for (const Index at : items[waiter].places) {
      left.push_back(places[at].lock);
      leave(at);
    }
    items[waiter].places.clear();
  }
  // How far back it stands, on the lock where that is furthest; 1 = at the head of all.
  [[nodiscard]] std::uint64_t position(Index waiter) const {
    std::uint64_t furthest = 0;
    for (const Index at : items[waiter].places) furthest = std::max(furthest, position_of(at));
    return furthest;
  }

  // --- Patience ----------------------------------------------------------------------------------
  // Gives up at `end`, whatever was set before.
  void set_end(Index waiter, Tick end) {
    items[waiter].gives_up = end;
    timers_.disarm(waiter);
    timers_.arm(waiter, due_ms(end));
  }
  // A waiter whose end has come; kNone when there is none (left).
  [[nodiscard]] Index pop_ended(Tick now) { return timers_.pop(passed_ms(now)); }
  // No end is before this; UINT64_MAX when nobody waits. As TimerWheel::next_due().
  [[nodiscard]] std::uint64_t next_due() const { return timers_.next_due(); }
  // Time begins at `now`. Before anybody waits.
  void start(Tick now) { timers_.start(passed_ms(now)); }

  Slab<Waiter> items;
  Slab<QueuePlace> places;

 private:
  void leave(Index at) {
    const QueuePlace place = places[at];
    Lock& queue = locks_.items[place.lock];
    PAWL_ASSERT(queue.waiters > 0);
    (place.before == kNone ? queue.first_waiter : places[place.before].after) = place.after;
    (place.after == kNone ? queue.last_waiter : places[place.after].before) = place.before;
    --queue.waiters;
    PAWL_ASSERT((queue.waiters == 0) == (queue.first_waiter == kNone));
    places.remove(at);
  }
  [[nodiscard]] std::uint64_t position_of(Index at) const {
    std::uint64_t count = 1;
    for (Index i = places[at].before; i != kNone; i = places[i].before) ++count;
    return count;
  }

  std::unordered_map<WaiterId, Index> by_id_;
  TimerWheel<Waiter> timers_;
  LockTable& locks_;
};

}  // namespace pawl::core
