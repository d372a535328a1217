// RestoreWait: after a restore from a backup nothing is granted for the longest TTL and the longest
// DELAY there was. A lease that was granted after the backup was made is unknown here; it must have
// expired, and its DELAY have passed, first (design rule 9). Requests that can wait queue up
// meanwhile.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace pawl::core {

class RestoreWait {
 public:
  // While loading: the store was restored, and this is how long to wait.
  void load(Millis wait) { wait_ = wait; }
  // Loading is complete. The wait starts in full after each start: how much of it had passed before
  // is not known.
  void start(Tick now) {
    if (wait_ > Millis(0)) ends_ = now + wait_;
  }
  [[nodiscard]] bool active() const { return ends_ != kNever; }
  // All of it, as it was loaded.
  [[nodiscard]] Millis whole() const { return wait_; }
  // When it is over; kNever when it is not active.
  [[nodiscard]] Tick ends() const { return ends_; }
  // Until it is over; 0 when it is not active.
  [[nodiscard]] Millis left(Tick now) const {
    if (!active()) return Millis(0);
    return std::max(Millis(0), std::chrono::ceil<Millis>(ends_ - now));
  }
  void end() { ends_ = kNever; }

 private:
  Millis wait_{0};
  Tick ends_ = kNever;
};

}  // namespace pawl::core
