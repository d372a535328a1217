// Answers to questions: what the core shows, as replies. Keys are spelled as in the protocol page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/views.h"
#include "server/telemetry.h"
#include "store/store.h"
#include "wire/reply_writer.h"

namespace pawl::server {

// Whether new locks are granted, and if not, why. Renewals and releases are served in every state
// but kLoading and kStandby.
enum class ServiceState : std::uint8_t {
  kGranting,
  kLoading,    // The store is still being read.
  kRestoring,  // Restored from a backup: leases from before may still run.
  kFull,       // Too little free space on the volume of the store.
  kStandby,    // Another pawld is active.
};
// granting, loading, restoring, full, standby
[[nodiscard]] std::string_view to_text(ServiceState state);

// How much of a limit is used.
struct LimitUse {
  std::string_view name;  // as in the configuration, in metrics and in -BUSY
  std::uint64_t use = 0;
  std::uint64_t limit = 0;
  // The most that one user has of what each may have; 0: there is no such limit.
  std::uint64_t greatest_user = 0;
  std::uint64_t per_user = 0;
};

struct StatusView {
  std::string_view version;
  std::string_view store;
  ServiceState state = ServiceState::kGranting;
  std::uint64_t epoch = 0;
  std::string_view active;  // where the active pawld answers
  Incarnation incarnation;
  core::Totals totals;
  Millis restoring{0};  // after a restore: until grants begin
  Millis uptime{0};
  Millis paused{0};  // of it, what did not count against leases
  std::uint64_t connections = 0;
  std::uint64_t connections_max = 0;
  std::uint64_t blocked = 0;
  std::vector<LimitUse> limits;
  std::optional<store::ClusterView> cluster;  // of a store that several pawld share
};

// loading, standby or active.
[[nodiscard]] std::string_view role_of(ServiceState state);
[[nodiscard]] std::string_view mode_text(Mode mode);
void write_lock(wire::ReplyWriter& reply, const core::LockView& view);
void write_epoch(wire::ReplyWriter& reply, const core::EpochView& epoch);
void write_status(wire::ReplyWriter& reply, const StatusView& status);
// INFO, in the lines of Redis, because its clients look for some of them (loading, redis_version,
// role).
[[nodiscard]] std::string info_text(const StatusView& status, const Telemetry& counted);

// "LOST" and what is known: "granted as 33, released", "released", "broken", "unknown".
[[nodiscard]] std::string lost_text(const core::Lost& lost, bool by_request);
void write_ask(wire::ReplyWriter& reply, const core::AskDone& done);
void write_refused(wire::ReplyWriter& reply, const core::Refused& refused);

}  // namespace pawl::server
