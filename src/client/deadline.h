// Until when a lease is valid for its client (G7). The client must stop before pawld can grant the
// lock to anyone else.
//
//   acquired:  first_sent + (waited + ttl)·(1−ρ) − margin
//   renewed:   sent + answered·(1−ρ) − margin
//
// Both count from a send. pawld cannot have started the lease before it received the request, so a
// deadline that counts from the send always comes first. Counted from the reply, or from the send
// of a retry, it may come long after pawld has granted the lock again. `waited` is pawld's own
// measure from receipt to grant, so that time in the queue costs only ρ of it.
#pragma once

#include "base/types.h"
#include "client/time.h"

namespace pawl::client {

// ρ bounds the relative rate of the client's and pawld's clocks: 1 %.
inline constexpr std::int64_t kDriftPercent = 1;
inline constexpr Millis kMarginMin{20};

// max(20 ms, TTL/100): for the time between reading the clock and acting on it.
[[nodiscard]] Nanos margin(Millis ttl);

struct AcquireTiming {
  Instant first_sent;  // when this request id was sent for the first time
  Millis waited{0};    // as answered
  Millis ttl{0};       // as answered
};
[[nodiscard]] Instant deadline(const AcquireTiming& acquired);

struct RenewTiming {
  Instant sent;        // when the renewal that was answered was sent
  Millis answered{0};  // time until it expires, as answered
  Millis ttl{0};       // of the lease
};
[[nodiscard]] Instant deadline(const RenewTiming& renewed);

// Whether a fresh grant may be returned to the caller as it is. With less than half of its TTL left
// it is renewed first.
[[nodiscard]] bool has_half_ttl_left(Instant deadline, Millis ttl, Instant now);

}  // namespace pawl::client
