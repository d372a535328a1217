// History: a ring of ended epochs, newest first for each lock; also what is known of a lease after
// its end. Memory only, bounded, for people and for the reason in -LOST.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
  Text lock;                    // Empty when the lease had several.
  std::uint64_t lock_hash = 0;  // Of the lock's name, as LockTable has it.
  Text owner;
  // All of the lease's, newline-separated, when there are several: once for all of its epochs.
  std::shared_ptr<const std::string> locks;
  std::uint16_t name_at = 0, name_size = 0;  // The lock in `locks`.
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

  [[nodiscard]] std::string_view name() const {
    return locks == nullptr ? lock.view() : std::string_view(*locks).substr(name_at, name_size);
  }
  // What it counts against the bytes of the history: about what it takes.
  [[nodiscard]] std::size_t bytes() const {
    return sizeof(Epoch) + owner.view().size() +
           (locks == nullptr ? lock.view().size()
            : first          ? locks->size()
                             : 0);
  }
};

class History {
 public:
  // How much is remembered. No epochs: nothing.
  struct Bounds {
    std::size_t epochs = 0;
    std::size_t bytes = SIZE_MAX;
  };
  // `seed` of hash_bytes(), as LockTable has it.
  History(std::uint64_t seed, Bounds bounds)
      : seed_(seed), capacity_(bounds.epochs), bytes_max_(bounds.bytes) {}

  // The newest epoch. When there is no room for it, the oldest are forgotten.
  void add(Epoch epoch);
  // Epoch::bytes() of all.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
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
    return number >= oldest_ && number <= count_;
  }
  void forget_oldest();

  std::uint64_t seed_;
  std::size_t capacity_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::vector<Epoch> ring_;   // Epoch number n (from 1) is at (n − 1) % capacity.
  std::uint64_t count_ = 0;   // Epochs ever added.
  std::uint64_t oldest_ = 1;  // The number of the oldest that is kept; count_ + 1 when none is.
  HashIndex by_lock_;         // The newest epoch of each lock.
  HashIndex by_lease_;
};

}  // namespace pawl::core
