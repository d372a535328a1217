// What an operator should notice about the service itself: that pawld was paused, that the disk is
// full, and that a shared store does not confirm in time.
#pragma once

#include "base/log.h"
#include "base/rate_limited_log.h"
#include "server/service_clock.h"
#include "store/store.h"

namespace pawl::server {

class ServiceLog {
 public:
  explicit ServiceLog(Log& log) : log_(log), pauses_(log), room_(log), window_(log) {}

  enum class Doing : std::uint8_t { kWaiting, kCommitting };
  // After a reading of the clock: logs the pause that ended with it, if it was a long one.
  void check_pause(const ServiceClock& clock, Doing doing);
  // Logs when the store begins, or ceases, to have room.
  void check_room(store::Store& store, Nanos uptime);
  // Logs when the store begins, or ceases, to confirm in time that this pawld is the active one.
  void check_role_window(bool open, Nanos uptime);
  // Logs damage that the store found in its own files, and its repair, once each.
  void report_damage(const store::Damage& damage);

 private:
  Log& log_;
  RateLimitedLog pauses_;
  RateLimitedLog room_;
  RateLimitedLog window_;
  bool had_room_ = true;
  bool window_was_open_ = true;
  std::uint64_t damage_found_ = 0;
  std::uint64_t damage_repaired_ = 0;
};

}  // namespace pawl::server
