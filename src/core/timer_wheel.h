// TimerWheel: which items of a Slab are due, in milliseconds. A hierarchical wheel of 6 levels of
// 64 slots (2^36 ms, two years), with one bit per occupied slot.
//
// arm, disarm and the search for the next slot are O(1); an item moves down at most one slot per
// level before it is due. A heap would be O(log n) per release, and every cycle of acquire and
// release arms and disarms once. Renewals do not touch the wheel at all: an item that is popped too
// early is armed again by its owner (once per TTL).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/assert.h"
#include "base/mutants.h"
#include "base/types.h"
#include "core/slab.h"

namespace pawl::core {

// The millisecond by which something due at `tick` is over. Wheels count whole milliseconds; a
// deadline is rounded up, so that nothing is ever early.
inline std::uint64_t due_ms(Tick tick) {
  if (PAWL_MUTANT(expiry_a_moment_early)) tick -= Millis(1);
  return static_cast<std::uint64_t>(std::chrono::ceil<Millis>(tick.time_since_epoch()).count());
}
// The last millisecond that has passed entirely.
inline std::uint64_t passed_ms(Tick tick) {
  return static_cast<std::uint64_t>(std::chrono::floor<Millis>(tick.time_since_epoch()).count());
}

// An item's place in the wheel; the item keeps it in a field called `timer`.
struct TimerLink {
  std::uint64_t due : 52 = 0;
  std::uint64_t slot : 12 = 0;  // 1 + slot number; 0 = not armed.
  Index previous = kNone;
  Index next = kNone;
};

template <class T>
class TimerWheel {
 public:
  using Millisecond = std::uint64_t;

  // `items` must outlive the wheel, and stay where it is.
  explicit TimerWheel(Slab<T>& items) : items_(&items) { heads_.fill(kNone); }

  // Everything at or before `now` counts as passed. Only while nothing is armed.
  void start(Millisecond now) {
    for (const std::uint64_t bits : occupied_) PAWL_ASSERT(bits == 0);
    now_ = now;
  }

  // Due at `due`, at the earliest one millisecond from where the wheel stands. The item must not be
  // armed.
  void arm(Index item, Millisecond due) {
    TimerLink& link = items_->operator[](item).timer;
    PAWL_ASSERT(link.slot == 0);
    link.due = (due > now_ ? due : now_ + 1) & ((Millisecond{1} << 52) - 1);
    insert(item);
  }

  // Nothing happens when it is not armed.
  void disarm(Index item) {
    if (items_->operator[](item).timer.slot != 0) unlink(item);
  }

  // An item due at or before `now`, disarmed; kNone when there is none left. One at a time, because
  // ending one item may disarm another.
  Index pop(Millisecond now) {
    while (true) {
      const Next next = find_next();
      if (next.slot == kSlots || next.start > now) {
        if (now > now_) now_ = now;
        return kNone;
      }
      if (next.start > now_) now_ = next.start;
      if (next.slot < kPerLevel) {
        const Index item = heads_[next.slot];
        unlink(item);
        return item;
      }
      // The wheel has reached a slot of a higher level: everything in it comes down, before
      // anything else is looked at.
      while (heads_[next.slot] != kNone) {
        const Index item = heads_[next.slot];
        unlink(item);
        insert(item);
      }
    }
  }

  // No item is due before this; UINT64_MAX when nothing is armed. There may be nothing due *at* it
  // either.
  [[nodiscard]] Millisecond next_due() const {
    const Next next = find_next();
    return next.slot == kSlots ? UINT64_MAX : next.start;
  }

 private:
  static constexpr unsigned kLevels = 9;  // 54 bits, more than `due` has: no uptime is too long.
  static constexpr unsigned kPerLevel = 64;
  static constexpr unsigned kSlots = kLevels * kPerLevel;

  struct Next {
    unsigned slot = kSlots;
    Millisecond start = 0;
  };

  // The level is that of the highest bit in which `due` differs from now: below it they share a
  // slot.
  [[nodiscard]] unsigned slot_of(Millisecond due) const {
    const unsigned highest =
        63U - static_cast<unsigned>(std::countl_zero((due ^ now_) | (kPerLevel - 1)));
    const unsigned level = highest / 6;
    PAWL_ASSERT(level < kLevels);
    return level * kPerLevel + static_cast<unsigned>((due >> (level * 6)) & (kPerLevel - 1));
  }

  void insert(Index item) {
    TimerLink& link = items_->operator[](item).timer;
    const unsigned slot = slot_of(link.due);
    link.slot = (slot + 1) & 0xfffU;
    link.previous = kNone;
    link.next = heads_[slot];
    if (link.next != kNone) items_->operator[](link.next).timer.previous = item;
    heads_[slot] = item;
    occupied_[slot / kPerLevel] |= std::uint64_t{1} << (slot % kPerLevel);
  }

  void unlink(Index item) {
    TimerLink& link = items_->operator[](item).timer;
    const unsigned slot = static_cast<unsigned>(link.slot) - 1;
    if (link.previous != kNone) {
      items_->operator[](link.previous).timer.next = link.next;
    } else {
      heads_[slot] = link.next;
    }
    if (link.next != kNone) items_->operator[](link.next).timer.previous = link.previous;
    if (heads_[slot] == kNone)
      occupied_[slot / kPerLevel] &= ~(std::uint64_t{1} << (slot % kPerLevel));
    link.slot = 0;
    link.previous = link.next = kNone;
  }

  // Lower levels hold what is nearer, so the first occupied slot at or after now's on the lowest
  // level is the next.
  [[nodiscard]] Next find_next() const {
    for (unsigned level = 0; level < kLevels; ++level) {
      if (occupied_[level] == 0) continue;
      const unsigned shift = level * 6;
      const unsigned here = static_cast<unsigned>((now_ >> shift) & (kPerLevel - 1));
      const std::uint64_t ahead = occupied_[level] >> here;
      PAWL_ASSERT(ahead != 0);  // Nothing armed lies behind the wheel.
      const unsigned slot = here + static_cast<unsigned>(std::countr_zero(ahead));
      const Millisecond base = (now_ >> shift) & ~Millisecond{kPerLevel - 1};
      return Next{level * kPerLevel + slot, (base | slot) << shift};
    }
    return Next{};
  }

  Slab<T>* items_;
  Millisecond now_ = 0;
  std::array<Index, kSlots> heads_{};
  std::array<std::uint64_t, kLevels> occupied_{};
};

}  // namespace pawl::core
