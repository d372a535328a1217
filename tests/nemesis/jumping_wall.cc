// jumping_wall.so: a wall clock that jumps by up to hours either way, several times a second.
// Loaded before libc (LD_PRELOAD) into processes of a world; only CLOCK_REALTIME and its kin are
// touched, so code that decides anything by the wall clock shows it (hard case 26).
#include <dlfcn.h>
#include <sys/time.h>

#include <cstdint>
#include <ctime>

namespace {

using ClockGetTime = int (*)(clockid_t, timespec*);

int real_clock(clockid_t clock, timespec* out) {
  static const auto real = reinterpret_cast<ClockGetTime>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return real(clock, out);
}

// Another one every 200 ms, the same for everyone who asks within them: up to four hours ahead or
// behind.
std::int64_t jump(const timespec& now) {
  std::uint64_t z = static_cast<std::uint64_t>(now.tv_sec) * 5 +
                    static_cast<std::uint64_t>(now.tv_nsec) / 200'000'000;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::int64_t>((z ^ (z >> 31)) % 28'801) - 14'400;
}

timespec jumped() {
  timespec now{};
  real_clock(CLOCK_REALTIME, &now);
  now.tv_sec += jump(now);
  return now;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return real_clock(clock, out);
  *out = jumped();
  return 0;
}

int gettimeofday(timeval* out, void*) {
  const timespec now = jumped();
  *out = {now.tv_sec, now.tv_nsec / 1'000};
  return 0;
}

time_t time(time_t* out) {
  const time_t now = jumped().tv_sec;
  if (out != nullptr) *out = now;
  return now;
}

}  // extern "C"
