// Many keys, each due at one time, earliest first. A round of timers costs O(log n) for each key
// that is due, however many exist.
//
//   timers.schedule(key, thing.timer, at);  // thing.timer: when it is due now; kNever: not at all
//   while (timers.next_due() <= now) visit(timers.first());  // visit() schedules it anew
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "client/time.h"

namespace pawl::client {

template <class Key>
class TimerQueue {
 public:
  // Moves `key` to `at`. `slot` is stored with the key's owner and says where the key is queued
  // now; only this function writes it. kNever takes the key out.
  void schedule(Key key, Instant& slot, Instant at) {
    if (slot == at) return;
    if (slot != kNever) entries_.erase({slot, key});
    slot = at;
    if (slot != kNever) entries_.insert({slot, key});
  }
  // kNever when the queue is empty.
  [[nodiscard]] Instant next_due() const {
    return entries_.empty() ? kNever : entries_.begin()->first;
  }
  // The key that is due first. The queue must not be empty.
  [[nodiscard]] Key first() const { return entries_.begin()->second; }
  // All keys due at `now`. They stay queued.
  [[nodiscard]] std::vector<Key> due_by(Instant now) const {
    std::vector<Key> found;
    for (auto at = entries_.begin(); at != entries_.end() && at->first <= now; ++at)
      found.push_back(at->second);
    return found;
  }

 private:
  std::set<std::pair<Instant, Key>> entries_;
};

}  // namespace pawl::client
