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
      fmt::format("the disk is full: no new lock is granted, renewals and releases go on. {} bytes "
                  "are free on the volume of the data directory, {} are needed "
                  "(space_reserve_bytes, and a segment where none could be made). Free some space; "
                  "grants resume within a second or two",
                  space.free, space.needed),
      {{"event", "disk_full"}, {"free", space.free}, {"needed", space.needed}});
}

}  // namespace pawl::server
