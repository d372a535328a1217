// Telemetry as Prometheus reads it. Knows names and help texts; where the numbers come from is
// telemetry.h's business.
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

// A copy of everything that /metrics tells of the engine.
struct Readings {
  Telemetry telemetry;
  core::Totals totals;
  std::uint64_t connections_resp = 0;
  std::uint64_t connections_http = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t connections_cut = 0;
  std::uint64_t wrong_secrets = 0;
  ServiceState state = ServiceState::kGranting;
  Millis restoring{0};
  std::optional<store::Space> space;
  std::optional<std::int64_t> certificate_expiry;  // seconds since 1970
  Nanos paused{0};
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

// The exposition format, version 0.0.4.
[[nodiscard]] std::string metrics_text(const Readings& readings, const ProcessReadings& process);
inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// docs/reference/metrics.md
[[nodiscard]] std::string metrics_page();

}  // namespace pawl::server
