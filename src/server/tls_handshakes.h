// The TLS handshakes under way: which there are, which is next, which have been silent too long.
// Knows no socket and no clock.
//
//   if (const auto gone = handshakes.begin(id, now)) …close it: there were too many…
//   handshakes.mark_ready(id);                                    // its socket has input
//   while (there is time left in this turn)  if (const auto id = handshakes.next_ready()) …a step…
//   while (const auto id = handshakes.next_late(now)) …close it…
//
// A handshake costs as much as thousands of renewals, and comes from unknown peers. So they take
// turns, a fixed share of each turn of the loop; they are bounded in number; and when there are too
// many, a silent one is closed.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "base/limits.h"
#include "base/newcomers.h"
#include "base/types.h"
#include "server/network.h"

namespace pawl::server {

class TlsHandshakes {
 public:
  struct Bounds {
    std::size_t under_way = limits::kHandshakesMax;
    Nanos patience = limits::kHandshakeTime;
    Random* random = nullptr;  // as in Newcomers
  };
  TlsHandshakes() : TlsHandshakes(Bounds{}) {}
  explicit TlsHandshakes(Bounds bounds)
      : newcomers_(
            {.most = bounds.under_way, .patience = bounds.patience, .random = bounds.random}) {}

  // When there are too many, answers the one to close in its stead, which is forgotten here: one of
  // those that wait for their peer.
  [[nodiscard]] std::optional<ConnectionId> begin(ConnectionId id, Nanos now);
  // All that may be under way are, and each of them waits for us: accept no connection for now.
  [[nodiscard]] bool full() const { return newcomers_.all_wait_for_us(); }
  void mark_ready(ConnectionId id);
  // The next one to make a step with; it is not ready afterwards.
  [[nodiscard]] std::optional<ConnectionId> next_ready();
  // One that has taken too long; it is forgotten here.
  [[nodiscard]] std::optional<ConnectionId> next_late(Nanos now);
  // It has succeeded, or failed.
  void end(ConnectionId id);

  // How long the loop may sleep for their sake.
  [[nodiscard]] Nanos patience(Nanos now) const;
  [[nodiscard]] bool empty() const { return newcomers_.empty(); }

 private:
  // Those that are ready wait for us.
  Newcomers newcomers_;
  std::deque<ConnectionId> queue_;  // those that are ready, in order, and some that are forgotten
};

}  // namespace pawl::server
