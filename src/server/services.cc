#include "server/services.h"

#include "base/version.h"

namespace pawl::server {

ServiceState Services::state(Now now) const {
  if (load.standby) return ServiceState::kStandby;
  if (load.loading) return ServiceState::kLoading;
  if (!store.has_room()) return ServiceState::kFull;  // First: it does not end by itself.
  return core.restoring_for(now) > Millis(0) ? ServiceState::kRestoring : ServiceState::kGranting;
}

StatusView Services::status(Now now) const {
  StatusView view;
  view.version = kVersion;
  view.store = store.kind();
  view.state = state(now);
  view.active = load.standby ? load.active.resp() : settings.address;
  view.epoch = load.standby ? load.active.epoch : load.loaded.epoch;
  view.incarnation = load.standby ? load.active.incarnation : load.loaded.incarnation;
  view.totals = totals();
  view.restoring = core.restoring_for(now);
  view.uptime = std::chrono::floor<Millis>(clock.uptime());
  view.paused = std::chrono::floor<Millis>(clock.paused());
  view.connections = connections.size();
  view.connections_max = connections.limits().ordinary;
  view.blocked = connections.blocked();
  view.limits = limit_uses();
  view.cluster = store.cluster();
  return view;
}

std::vector<LimitUse> Services::limit_uses() const {
  const core::Accounts& accounts = core.accounts();
  const core::Usage &all = accounts.total(), most = accounts.greatest();
  const core::Quota &in_all = accounts.in_all(), &per_user = accounts.per_user();
  return {
      {"leases", all.places(), in_all.leases, most.leases, per_user.leases},
      {"lease_bytes", all.bytes, in_all.bytes, most.bytes, per_user.bytes},
      {"waiters", all.waiters, in_all.waiters, most.waiters, per_user.waiters},
      {"observers", observers.size(), settings.observers_max, observers.greatest_user(),
       settings.observers_per_user},
      {"history_bytes", core.history_bytes(), settings.core.history_bytes},
      {"output_bytes", connections.output_total(), settings.output_total_max},
  };
}

}  // namespace pawl::server
