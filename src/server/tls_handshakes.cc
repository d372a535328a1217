#include "server/tls_handshakes.h"

#include <algorithm>

#include "base/assert.h"

namespace pawl::server {

std::optional<ConnectionId> TlsHandshakes::begin(ConnectionId id, Nanos now) {
  PAWL_ASSERT(all_.empty() || all_.rbegin()->first < id);
  std::optional<ConnectionId> gone;
  if (all_.size() >= bounds_.under_way) {
    const auto silent =
        std::find_if(all_.begin(), all_.end(), [](const auto& one) { return !one.second.ready; });
    PAWL_ASSERT(silent !=
                all_.end());  // Else it was full(), and nothing should have been accepted.
    gone = silent->first;
    forget(silent);
  }
  all_.emplace_hint(all_.end(), id, Handshake{now + bounds_.patience, false});
  return gone;
}

void TlsHandshakes::mark_ready(ConnectionId id) {
  const auto found = all_.find(id);
  PAWL_ASSERT(found != all_.end());
  if (found->second.ready) return;
  found->second.ready = true;
  ++ready_;
  queue_.push_back(id);
}

std::optional<ConnectionId> TlsHandshakes::next_ready() {
  while (!queue_.empty()) {
    const ConnectionId id = queue_.front();
    queue_.pop_front();
    const auto found = all_.find(id);
    if (found == all_.end()) continue;
    found->second.ready = false;
    --ready_;
    return id;
  }
  return std::nullopt;
}

// One that is ready is not late: it waits for us.
std::optional<ConnectionId> TlsHandshakes::next_late(Nanos now) {
  for (auto at = all_.begin(); at != all_.end() && at->second.limit <= now; ++at) {
    if (at->second.ready) continue;
    const ConnectionId id = at->first;
    forget(at);
    return id;
  }
  return std::nullopt;
}

void TlsHandshakes::end(ConnectionId id) {
  const auto found = all_.find(id);
  PAWL_ASSERT(found != all_.end());
  forget(found);
}

void TlsHandshakes::forget(Position position) {
  if (position->second.ready) --ready_;
  all_.erase(position);
}

Nanos TlsHandshakes::patience(Nanos now) const {
  if (ready_ > 0) return Nanos(0);
  return all_.empty() ? Nanos::max() : std::max(all_.begin()->second.limit - now, Nanos(0));
}

}  // namespace pawl::server
