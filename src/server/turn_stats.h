// What one turn measured: which commands it served, and how long the granted ones had waited. When
// the turn ends, all of it took as long as the turn did.
//
//   stats.begin_turn(clock.uptime());
//   stats.count_command(verb index)…;  stats.count_acquire(outcome)…;
//   if (stats.any()) stats.end_turn(uptime read after the commit);
#pragma once

#include <cstdint>
#include <vector>

#include "core/outputs.h"
#include "server/telemetry.h"

namespace pawl::server {

class TurnStats {
 public:
  explicit TurnStats(Telemetry& telemetry)
      : telemetry_(telemetry), served_(telemetry.commands.size()) {}

  void begin_turn(Nanos uptime) { began_ = uptime; }
  // `index` of its verb in the table; Telemetry::unknown() where there is none.
  void count_command(std::size_t index) {
    if (served_[index]++ == 0) served_indexes_.push_back(static_cast<std::uint8_t>(index));
  }
  // How an acquire ended: now, or when its wait did.
  void count_acquire(const core::Outcome& outcome);

  [[nodiscard]] bool any() const { return !served_indexes_.empty() || !granted_waits_.empty(); }
  // By uptime, pauses included: a sync that hung for ten seconds is to be seen as that.
  void end_turn(Nanos uptime);

 private:
  Telemetry& telemetry_;
  Nanos began_{0};
  std::vector<std::uint32_t> served_;         // how many commands of each verb
  std::vector<std::uint8_t> served_indexes_;  // where that is not 0
  std::vector<Millis> granted_waits_;
};

}  // namespace pawl::server
