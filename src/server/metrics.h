// Telemetry as Prometheus reads it: names and help texts. The numbers come from telemetry.h.
//
//   const Readings readings = readings_of(engine);       // on the engine's thread: a copy
//   out = metrics_text(readings, process);               // on any other
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/views.h"
#include "server/reports.h"
#include "server/telemetry.h"
#include "store/store.h"

namespace pawl::server {

class Engine;

// A copy of everything that /metrics shows of the engine.
struct Readings {
  Telemetry telemetry;
  core::Totals totals;
  std::uint64_t connections_resp = 0;
  std::uint64_t unauthenticated = 0;    // of these, where users exist
  std::uint64_t connections_limit = 0;  // that may use every command
  std::uint64_t requests_http = 0;      // under way, streams of events included
  ServiceState state = ServiceState::kGranting;
  Millis restoring{0};
  std::optional<store::Space> space;
  Nanos paused{0};
  std::vector<LimitUse> limits;
  std::optional<store::ClusterView> cluster;
};
[[nodiscard]] Readings readings_of(const Engine& engine);

// And of the process around it.
struct ProcessReadings {
  double cpu_seconds = 0;
  double start_seconds = 0;  // since 1970
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_descriptors = 0;
  std::uint64_t descriptors_max = 0;
  std::uint64_t store_bytes = 0;
  std::optional<std::uint64_t> free_bytes;  // of its volume; nothing without a data directory
};
[[nodiscard]] ProcessReadings read_process(const std::string& data_directory);

// And of its HTTP server, which knows its connections itself.
struct HttpReadings {
  std::uint64_t connections = 0;
  std::uint64_t connections_max = 0;
  std::uint64_t refused = 0;
  std::uint64_t late = 0;       // closed: its client was not known in time
  std::uint64_t displaced = 0;  // closed: one of too many of these
};

// The exposition format, version 0.0.4. `http`: nothing where there is no HTTP server.
[[nodiscard]] std::string metrics_text(const Readings& readings, const ProcessReadings& process,
                                       const std::optional<HttpReadings>& http = std::nullopt);
inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// docs/reference/metrics.md
[[nodiscard]] std::string metrics_page();

}  // namespace pawl::server
