// The parts of an engine, as the verbs see them.
#pragma once

#include "base/log.h"
#include "base/random.h"
#include "core/core.h"
#include "server/access_control.h"
#include "server/backups.h"
#include "server/connections.h"
#include "server/engine_settings.h"
#include "server/handover.h"
#include "server/observers.h"
#include "server/reply_router.h"
#include "server/reports.h"
#include "server/service_clock.h"
#include "server/telemetry.h"
#include "server/turn_stats.h"
#include "store/store.h"

namespace pawl::server {

// What is known of the store; nothing while it is being read.
struct LoadState {
  bool loading = true;
  store::Loaded loaded;
  // Another pawld is active, and this one will load when that is over; then it is `loading`, too.
  bool standby = false;
  store::Active active;  // while standby: that other one
};

// References only: the engine owns all of it, and outlives this.
struct Services {
  const EngineSettings& settings;
  const LoadState& load;
  const ServiceClock& clock;
  store::Store& store;
  Random& random;
  Log& log;
  core::Core& core;
  Telemetry& telemetry;
  TurnStats& stats;
  Connections& connections;
  ReplyRouter& replies;
  AccessControl& access;
  Observers& observers;
  Backups& backups;
  Handover& handover;

  // Whether locks are granted, and if not, why.
  [[nodiscard]] ServiceState state(Now now) const;
  [[nodiscard]] StatusView status(Now now) const;
  // Nothing while this pawld loads or stands by.
  [[nodiscard]] core::Totals totals() const {
    return load.loading ? core::Totals{} : core.totals();
  }
  [[nodiscard]] std::vector<LimitUse> limit_uses() const;
};

}  // namespace pawl::server
