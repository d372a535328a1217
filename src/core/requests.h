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
  std::uint64_t fingerprint = 0;  // Core::fingerprint(): a retry with another is a conflict.
  Token token;                    // Once granted.
  Tick forget_at = kNever;        // Once ended.
  Index subject = kNone;          // The waiter or the lease.
  Index ended_after = kNone;      // The next one that ended after this.
  State state = State::kWaiting;
  Ending ending = Ending::kReleased;
};

class Requests {
 public:
  // Of ended requests the newest `remembered_max` are kept, each for `memory`.
  Requests(std::uint64_t seed, std::size_t remembered_max, Millis memory)
      : seed_(seed), remembered_max_(remembered_max), memory_(memory) {}

  // kNone when unknown. One whose time is over is still found until forget_before() removed it.
  [[nodiscard]] Index find(std::string_view id) const;
  // A new request that waits as `waiter`; kNone when it is about to be granted. The id is unknown
  // so far.
  Index add_waiting(std::string_view id, std::uint64_t fingerprint, Index waiter);
  // The request, which waited, has this lease now.
  void granted(Index request, Index lease, Token token);
  // Its lease ended. May forget the one that ended first.
  void ended(Index request, Ending ending, Tick now);
  // Its wait is over without a grant: forgotten, as if it had never been asked.
  void withdraw(Index request);
  // Forgets what ended so long ago that its time is over at `now`.
  void forget_before(Tick now);

  Slab<Request> items;

 private:
  [[nodiscard]] std::uint64_t hash_of(std::string_view id) const;
  void remove(Index request);
  void forget_oldest();

  std::uint64_t seed_;
  std::size_t remembered_max_;
  Millis memory_;
  HashIndex by_id_;
  // Ended ones, in order of ending; all are remembered equally long.
  Index oldest_ = kNone, newest_ = kNone;
  std::size_t ended_count_ = 0;
};

}  // namespace pawl::core
