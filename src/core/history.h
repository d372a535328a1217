// History: a ring of ended epochs, newest first for each lock; also what is known of a lease after
// its end. Memory only, bounded, for people and for the reason in -LOST.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/types.h"
#include "core/hash_index.h"
#include "core/outputs.h"
#include "core/text.h"
#include "core/views.h"

namespace pawl::core {

// One lease under one of its locks.
struct Epoch {
  Text lock;
  std::uint64_t lock_hash = 0;  // Of the lock's name, as LockTable has it.
  Text owner;
  Text locks;  // All of the lease's, newline-separated, when there are several.
  LeaseId lease;
  Token token;
  Token greatest;  // Of this lock so far: readers and LIMIT holders do not end in order of token.
  UnixMs granted;
  UnixMs ended;
  // Number of the lock's next older epoch, if the ring still has it; 0 = none.
  std::uint64_t older = 0;
  Mode mode = Mode::kExclusive;
  Ending how = Ending::kReleased;
  bool first = false;  // The entry by which the lease itself is found.
};

class History {
 public:
  // `seed` of hash_bytes(), as LockTable has it. A capacity of 0 remembers nothing.
  History(std::uint64_t seed, std::size_t capacity) : seed_(seed), capacity_(capacity) {}

  // The newest epoch. When the ring is full, the oldest is forgotten.
  void add(Epoch epoch);
  // At most `count` epochs of the lock, newest first.
  [[nodiscard]] std::vector<EpochView> of(std::string_view lock, std::size_t count) const;
  // The greatest token of the lock's epochs; nothing when the ring has forgotten it.
  [[nodiscard]] std::optional<Token> last_token(std::string_view lock) const;
  // How a lease ended; nothing when the ring has forgotten it.
  [[nodiscard]] Lost lost(LeaseId lease) const;

 private:
  // By hash alone, so that adding touches no names; readers compare them.
  [[nodiscard]] Index newest_of(std::uint64_t hash) const;
  [[nodiscard]] bool kept(std::uint64_t number) const {
    return number != 0 && number + ring_.size() > count_;
  }
  void evict(Index slot);

  std::uint64_t seed_;
  std::size_t capacity_;
  std::vector<Epoch> ring_;  // Epoch number n (from 1) is at (n − 1) % capacity.
  std::uint64_t count_ = 0;  // Epochs ever added.
  HashIndex by_lock_;        // The newest epoch of each lock.
  HashIndex by_lease_;
};

}  // namespace pawl::core
