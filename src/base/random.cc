#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.h"

namespace pawl {

std::uint64_t SystemRandom::next() {
  if (left_ == 0) {
    ssize_t got = -1;
    do {
      got = getrandom(pool_, sizeof(pool_), 0);
    } while (got < 0 && errno == EINTR);
    PAWL_ASSERT(got == static_cast<ssize_t>(sizeof(pool_)));
    left_ = sizeof(pool_) / sizeof(pool_[0]);
  }
  const std::uint64_t taken = pool_[--left_];
  pool_[left_] = 0;  // A secret that was handed out does not stay in memory.
  return taken;
}

}  // namespace pawl
