#include "server/services.h"

#include "base/version.h"

namespace pawl::server {

ServiceState Services::state(Now now) const {
  if (load.loading) return ServiceState::kLoading;
  if (!store.has_room()) return ServiceState::kFull;  // First: it does not end by itself.
  return core.restoring_for(now) > Millis(0) ? ServiceState::kRestoring : ServiceState::kGranting;
}

StatusView Services::status(Now now) const {
  StatusView view;
  view.version = kVersion;
  view.store = store.kind();
  view.state = state(now);
  view.active = settings.address;
  view.incarnation = load.loaded.incarnation;
  view.totals = core.totals();
  view.restoring = core.restoring_for(now);
  view.uptime = std::chrono::floor<Millis>(clock.uptime());
  view.paused = std::chrono::floor<Millis>(clock.paused());
  view.connections = connections.size();
  view.connections_max = connections.limits().ordinary;
  view.blocked = connections.blocked();
  return view;
}

}  // namespace pawl::server
