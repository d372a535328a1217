// What an engine is configured with.
#pragma once

#include <cstdint>
#include <string>

#include "base/limits.h"
#include "core/core.h"
#include "server/event_ring.h"

namespace pawl::server {

struct EngineSettings {
  Millis ttl_max = limits::kTtlMaxDefault;
  Millis delay_max = limits::kDelayMax;
  std::size_t connections_max = limits::kConnectionsMax;
  std::size_t connections_reserved = limits::kConnectionsReserved;
  // Where users exist: connections that have not authenticated, and the time they have for it.
  std::size_t newcomers_max = limits::kNewcomersMax;
  Nanos authenticate_within = limits::kAuthenticateTime;
  std::size_t async_waits_max = limits::kAsyncWaitsPerConnection;
  std::uint64_t work_per_turn = limits::kWorkPerTurn;  // see turn_budget.h
  std::size_t output_max = limits::kOutputBufferMax;
  std::size_t output_total_max = limits::kOutputTotalMax;
  std::size_t observers_max = limits::kObserversMax;
  std::size_t observers_per_user = limits::kObserversPerUser;
  EventRing::Bounds events;
  core::Options core;
  std::string address;  // where clients reach this pawld; STATUS shows it
};

}  // namespace pawl::server
