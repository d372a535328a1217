// HashIndex: finds items of a Slab by key. It keeps 32 bits of hash beside each index, so that a
// probe touches the items themselves only when those agree, and growing touches none. Open
// addressing, linear probing, erase by shifting back: no tombstones, so a table that churns for
// years stays as fast as a new one.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "core/slab.h"

namespace pawl::core {

class HashIndex {
 public:
  // The item with this hash for which `equal(index)` holds, or kNone.
  template <class Equal>
  [[nodiscard]] Index find(std::uint64_t hash, Equal equal) const {
    if (slots_.empty()) return kNone;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t at = tag & mask(); slots_[at].item != kNone; at = (at + 1) & mask()) {
      if (slots_[at].tag == tag && equal(slots_[at].item)) return slots_[at].item;
    }
    return kNone;
  }

  // The item must not be in the index yet.
  void insert(std::uint64_t hash, Index item) {
    PAWL_ASSERT(item != kNone);
    if ((size_ + 1) * 8 > slots_.size() * 7) grow_to(slots_.empty() ? 16 : slots_.size() * 2);
    place(Slot{tag_of(hash), item});
    ++size_;
  }

  // The item must be in the index.
  void erase(std::uint64_t hash, Index item) {
    const bool found = erase_if_found(hash, item);
    PAWL_ASSERT(found);
  }

  // Whether it was in the index.
  bool erase_if_found(std::uint64_t hash, Index item) {
    if (slots_.empty()) return false;
    const std::size_t hole = slot_of(hash, item);
    if (slots_[hole].item != item) return false;
    close(hole);
    --size_;
    return true;
  }

  // The item must be in the index; `other`, of the same hash, takes its place.
  void replace(std::uint64_t hash, Index item, Index other) {
    PAWL_ASSERT(size_ > 0 && other != kNone);
    const std::size_t at = slot_of(hash, item);
    PAWL_ASSERT(slots_[at].item == item);
    slots_[at].item = other;
  }

  // Room for this many items without growing.
  void reserve(std::size_t items) {
    const std::size_t slots = std::bit_ceil(items * 8 / 7 + 1);
    if (slots > slots_.size()) grow_to(slots);
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    Index item = kNone;
  };

  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash ^ (hash >> 32));
  }
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  // Where the item is, or the empty slot where the search for it ends.
  [[nodiscard]] std::size_t slot_of(std::uint64_t hash, Index item) const {
    PAWL_ASSERT(item != kNone);
    std::size_t at = tag_of(hash) & mask();
    while (slots_[at].item != item && slots_[at].item != kNone) at = (at + 1) & mask();
    return at;
  }

  void place(Slot slot) {
    std::size_t at = slot.tag & mask();
    while (slots_[at].item != kNone) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  // Moves back whatever the hole cut off from its home.
  void close(std::size_t hole) {
    for (std::size_t at = (hole + 1) & mask(); slots_[at].item != kNone; at = (at + 1) & mask()) {
      const std::size_t home = slots_[at].tag & mask();
      const bool reachable = ((at - home) & mask()) < ((at - hole) & mask());
      if (reachable) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = Slot{};
  }

  void grow_to(std::size_t count) {
    std::vector<Slot> old(count);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.item != kNone) place(slot);
    }
  }

  std::vector<Slot> slots_;  // size is zero or a power of two; at most 7/8 full
  std::size_t size_ = 0;
};

}  // namespace pawl::core
