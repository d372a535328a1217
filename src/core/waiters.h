// Waiters: the requests that wait, and the queue of each lock. One waiter stands in the queue of
// every lock it named, and holds none of them meanwhile (G6).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lease_terms.h"
#include "base/types.h"
#include "core/lock_table.h"
#include "core/queue_ranks.h"
#include "core/slab.h"
#include "core/text.h"
#include "core/timer_wheel.h"
#include "core/work_count.h"

namespace pawl::core {

// One waiter's place in the queue of one lock.
struct QueuePlace {
  Index waiter = kNone;
  Index lock = kNone;
  Index before = kNone, after = kNone;  // Places in the same queue.
  std::uint32_t number = 0;             // In the ranks of the queue, where it has any.
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
  std::uint32_t bytes = 0;  // As counted in Accounts.
  AccountId account = 0;
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
    if (QueueRanks* ranks = ranks_of(lock)) place.number = ranks->append();
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
  // How far back it stands, on the lock where that is furthest; 1 = at the head of all. O(log n):
  // after a partition a hundred thousand waiters may ask again at once.
  [[nodiscard]] std::uint64_t position(Index waiter) {
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
  WorkCount work;  // Places visited.

 private:
  // A queue up to this long is counted by walking it. Short, so that the random tests go beyond it.
  static constexpr std::uint32_t kShortQueue = 8;

  void leave(Index at) {
    const QueuePlace place = places[at];
    Lock& queue = locks_.items[place.lock];
    PAWL_ASSERT(queue.waiters > 0);
    (place.before == kNone ? queue.first_waiter : places[place.before].after) = place.after;
    (place.after == kNone ? queue.last_waiter : places[place.after].before) = place.before;
    --queue.waiters;
    PAWL_ASSERT((queue.waiters == 0) == (queue.first_waiter == kNone));
    places.remove(at);
    QueueRanks* ranks = ranks_of(place.lock);
    if (ranks == nullptr) return;
    ranks->remove(place.number);
    if (queue.waiters < kShortQueue / 2) {
      ranks_.erase(place.lock);
    } else if (ranks->sparse()) {
      build_ranks(place.lock);
    }
  }
  [[nodiscard]] std::uint64_t position_of(Index at) {
    const Index lock = places[at].lock;
    if (locks_.items[lock].waiters <= kShortQueue) {
      std::uint64_t count = 1;
      for (Index i = places[at].before; i != kNone; i = places[i].before) ++count;
      work.add(count);
      return count;
    }
    if (ranks_of(lock) == nullptr) build_ranks(lock);
    work.add(std::bit_width(places[at].number));
    return ranks_.at(lock).rank(places[at].number);
  }
  // nullptr: nobody has asked for a position since the queue was short.
  [[nodiscard]] QueueRanks* ranks_of(Index lock) {
    if (ranks_.empty()) return nullptr;
    const auto found = ranks_.find(lock);
    return found == ranks_.end() ? nullptr : &found->second;
  }
  void build_ranks(Index lock) {
    QueueRanks ranks;
    for (Index i = locks_.items[lock].first_waiter; i != kNone; i = places[i].after)
      places[i].number = ranks.append();
    work.add(locks_.items[lock].waiters);
    ranks_.insert_or_assign(lock, std::move(ranks));
  }

  std::unordered_map<WaiterId, Index> by_id_;
  std::unordered_map<Index, QueueRanks> ranks_;  // Of long queues whose positions were asked for.
  TimerWheel<Waiter> timers_;
  LockTable& locks_;
};

}  // namespace pawl::core
