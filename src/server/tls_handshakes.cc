#include "server/tls_handshakes.h"

#include <algorithm>

#include "base/assert.h"

namespace pawl::server {
namespace {

std::optional<ConnectionId> connection(std::optional<Newcomers::Id> id) {
  return id ? std::optional(ConnectionId{*id}) : std::nullopt;
}

}  // namespace

std::optional<ConnectionId> TlsHandshakes::begin(ConnectionId id, Nanos now) {
  PAWL_ASSERT(!full());  // Nothing should have been accepted.
  return connection(newcomers_.add(id.value, now));
}

void TlsHandshakes::mark_ready(ConnectionId id) {
  if (newcomers_.waits_for_us(id.value)) return;
  newcomers_.set_waits_for_us(id.value, true);
  queue_.push_back(id);
}

std::optional<ConnectionId> TlsHandshakes::next_ready() {
  while (!queue_.empty()) {
    const ConnectionId id = queue_.front();
    queue_.pop_front();
    if (!newcomers_.contains(id.value)) continue;
    newcomers_.set_waits_for_us(id.value, false);
    return id;
  }
  return std::nullopt;
}

// One that is ready is not late: it waits for us.
std::optional<ConnectionId> TlsHandshakes::next_late(Nanos now) {
  return connection(newcomers_.next_late(now));
}

void TlsHandshakes::end(ConnectionId id) {
  PAWL_ASSERT(newcomers_.contains(id.value));
  newcomers_.remove(id.value);
}

Nanos TlsHandshakes::patience(Nanos now) const {
  if (newcomers_.any_waits_for_us()) return Nanos(0);
  const Nanos deadline = newcomers_.next_deadline();
  return deadline == Nanos::max() ? deadline : std::max(deadline - now, Nanos(0));
}

}  // namespace pawl::server
