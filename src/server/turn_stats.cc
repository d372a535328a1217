#include "server/turn_stats.h"

#include <utility>

#include "base/assert.h"

namespace pawl::server {

void TurnStats::count_acquire(const core::Outcome& outcome) {
  telemetry_.count(outcome);
  if (const auto* granted = std::get_if<core::Granted>(&outcome))
    granted_waits_.push_back(granted->waited);
}

void TurnStats::end_turn(Nanos uptime) {
  PAWL_ASSERT(uptime >= began_);
  const Nanos took = uptime - began_;
  telemetry_.turn.observe(took);
  for (const std::uint8_t index : served_indexes_) {
    telemetry_.commands[index].duration.observe(took, std::exchange(served_[index], 0));
  }
  for (const Millis waited : granted_waits_) {
    telemetry_.acquire.observe(waited + took);
    if (waited > Millis(0)) telemetry_.wait.observe(waited);
  }
  served_indexes_.clear();
  granted_waits_.clear();
}

}  // namespace pawl::server
