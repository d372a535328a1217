#include "server/service_log.h"

#include <fmt/format.h>

#include <utility>

namespace pawl::server {
namespace {

constexpr Millis kPauseLogged{500};  // Shorter ones are only counted; a busy machine has many.

}  // namespace

void ServiceLog::check_pause(const ServiceClock& clock, Doing doing) {
  const Nanos pause = clock.last_pause();
  if (pause < kPauseLogged) return;
  const double seconds = std::chrono::duration<double>(pause).count();
  constexpr std::string_view kEffect = "Every lease runs longer by all but 250 ms of it";
  if (doing == Doing::kCommitting) {
    pauses_.warning(clock.uptime(),
                    fmt::format("a commit took {:.1f} s: the disk is too slow, or shared. {}",
                                seconds, kEffect),
                    {{"event", "slow_commit"}});
  } else {
    pauses_.warning(clock.uptime(),
                    fmt::format("pawld stood still for {:.1f} s: the process or the machine was "
                                "stopped, or had no CPU. {}",
                                seconds, kEffect),
                    {{"event", "paused"}});
  }
}

void ServiceLog::check_room(store::Store& store, Nanos uptime) {
  const bool room = store.has_room();
  if (room == std::exchange(had_room_, room)) return;
  const store::Space space = store.space().value_or(store::Space{});
  if (room) {
    log_.info(fmt::format(
                  "locks are granted again: {} bytes are free on the volume of the data directory",
                  space.free),
              {{"event", "disk_has_room"}, {"free", space.free}});
    return;
  }
  room_.warning(
      uptime,
      fmt::format(
          "the disk is full: no new lock is granted, renewals and releases go on. {} bytes "
          "are free on the volume of the data directory, {} are needed "
          "(space_reserve_bytes, and a segment where none could be made). Lacking: {}. Free "
          "some of it; grants resume within a second or two",
          space.free, space.needed, space.short_of.empty() ? "space" : space.short_of),
      {{"event", "disk_full"}, {"free", space.free}, {"needed", space.needed}});
}

void ServiceLog::check_role_window(bool open, Nanos uptime) {
  if (open == std::exchange(window_was_open_, open)) return;
  if (open) {
    log_.info("the store confirms again that this pawld is the active one; answers are sent",
              {{"event", "role_confirmed"}});
    return;
  }
  window_.warning(
      uptime,
      "the store has not confirmed in time that this pawld is the active one: every answer is held "
      "until it does, because another one may be active by now. Check the store, and the network "
      "to it",
      {{"event", "role_unconfirmed"}});
}

void ServiceLog::report_damage(const store::Damage& damage) {
  if (damage.found != std::exchange(damage_found_, damage.found)) {
    log_.error(fmt::format(
                   "the store found damage in its own files: {}. Nothing is lost: all of it is in "
                   "memory, and a new checkpoint is written from there. Check the disk, and do not "
                   "restart pawld before the log says that the damage is repaired",
                   damage.what),
               {{"event", "store_damaged"}, {"what", damage.what}});
  }
  if (damage.repaired != std::exchange(damage_repaired_, damage.repaired)) {
    log_.warning(
        "the damage in the store is repaired: a checkpoint replaces the damaged files. "
        "Check the disk",
        {{"event", "store_repaired"}});
  }
}

}  // namespace pawl::server
