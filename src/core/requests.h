// Request ids: what became of each, so that a retry never gets a second grant (G5). Remembered
// while the request waits and while its lease lives, and for a while after (in memory, bounded);
// then the same id is a new request.
#pragma once

#include <string_view>

#include "base/types.h"
#include "core/hash_index.h"
#include "core/outputs.h"
#include "core/slab.h"
#include "core/text.h"

namespace pawl::core {

struct Request {
  enum class State : std::uint8_t { kWaiting, kHeld, kEnded };

  Text id;
  std::uint64_t fingerprint =
      0;        // Of locks (as a set), mode, limit and TTL: anything else is a conflict.
  Token token;  // Once granted.
  Tick forget_at = kNever;    // Once ended.
  Index subject = kNone;      // The waiter or the lease.
  Index ended_after = kNone;  // The next one that ended after this.
  State state = State::kWaiting;
  Ending ending = Ending::kReleased;
};

class Requests {
 public:
  Requests(std::uint64_t seed, std::size_t remembered_max, Millis memory)
      : seed_(seed), remembered_max_(remembered_max), memory_(memory) {}

  // kNone when unknown. What is past its time is still found until forget_before() has swept it
  // away.
  [[nodiscard]] Index find(std::string_view id) const;
  Index add_waiting(std::string_view id, std::uint64_t fingerprint, Index waiter);
  void granted(Index request, Index lease, Token token);
  void ended(Index request, Ending ending, Tick now);
  // Its wait is over without a grant: as if never asked.
  void withdraw(Index request);
  void forget_before(Tick now);
  [[nodiscard]] Tick next_forget() const {
    return oldest_ == kNone ? kNever : items[oldest_].forget_at;
  }

  Slab<Request> items;

 private:
  [[nodiscard]] std::uint64_t hash_of(std::string_view id) const;
  void remove(Index request);
  void forget_oldest();

  std::uint64_t seed_;
  std::size_t remembered_max_;
  Millis memory_;
  HashIndex by_id_;
  Index oldest_ = kNone,
        newest_ = kNone;  // Ended ones, in order of ending; all are remembered equally long.
  std::size_t ended_count_ = 0;
};

}  // namespace pawl::core
