// Pauses between attempts: each about twice as long as the one before, up to a limit.
//
//   Backoff backoff{50ms, 2s};
//   const Instant again = now + backoff.next(random);  // 25 to 50 ms, then 50 to 100 ms, …
//   backoff.reset();                                   // after a success
//
// Jitter: clients that lost the same pawld must not all try again in the same millisecond.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "base/types.h"

namespace pawl::client {

class Backoff {
 public:
  constexpr Backoff(Millis shortest, Millis longest) : shortest_(shortest), longest_(longest) {}

  // At most `limit`, unless that is less than the shortest pause.
  [[nodiscard]] Nanos next(Random& random, Millis limit = Millis::max()) {
    const Millis doubled = last_ == Millis(0) ? shortest_ : last_ * 2;
    last_ = std::min({doubled, longest_, std::max(limit, shortest_)});
    const auto half = static_cast<std::uint64_t>(Nanos(last_).count() / 2);
    return Nanos(half + random.below(half + 1));
  }
  void reset() { last_ = Millis(0); }

 private:
  const Millis shortest_;
  const Millis longest_;
  Millis last_{0};
};

}  // namespace pawl::client
