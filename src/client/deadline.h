// Until when a lease is good for its client (G7). The client must know before the lock can pass to
// anyone else.
//
//   acquired:  first_sent + (waited + ttl)·(1−ρ) − margin      renewed:  sent + answered·(1−ρ) − margin
//
// Both count from a send. pawld cannot have started the lease before it was asked, so a count from
// the send always ends first; a count from the reply, or from the retry's send, may end long after
// the lock has passed on. `waited` is pawld's own figure from receipt to grant, so the time in the
// queue costs only ρ of it.
#pragma once

#include "base/types.h"
#include "client/time.h"

namespace pawl::client {

// ρ bounds the relative rate of the client's and pawld's clocks: 1 %.
inline constexpr std::int64_t kDriftPercent = 1;
inline constexpr Millis kMarginMin{20};

// max(20 ms, TTL/100): for what happens between looking at the clock and acting on it.
[[nodiscard]] Nanos margin(Millis ttl);

struct Acquired {
  Instant first_sent;  // when this request id was sent for the first time
  Millis waited{0};    // as answered
  Millis ttl{0};       // as answered
};
[[nodiscard]] Instant deadline(const Acquired& acquired);

struct Renewed {
  Instant sent;        // when the renewal that was answered was sent
  Millis answered{0};  // time until it expires, as answered
  Millis ttl{0};       // of the lease
};
[[nodiscard]] Instant deadline(const Renewed& renewed);

// Whether a fresh grant may be handed out as it is: at least half of its TTL is left. Otherwise it
// is renewed first.
[[nodiscard]] bool worth_handing_out(Instant deadline, Millis ttl, Instant now);

}  // namespace pawl::client
