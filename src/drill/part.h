// Something of the stage that a descriptor or a moment wakes: an actor's pipe, the proxy, what
// observes pawld. The stage waits for all of them at once, on one thread.
#pragma once

#include <poll.h>

#include <span>
#include <vector>

#include "client/time.h"

namespace pawl::drill {

class Part {
 public:
  virtual ~Part() = default;

  // What to poll for.
  [[nodiscard]] virtual std::vector<pollfd> interest() const = 0;
  // As many as interest() named, with what poll() answered. Also called when it was another part
  // that was woken.
  virtual void turn(std::span<const pollfd> ready) = 0;
  // When to take a turn at the latest.
  [[nodiscard]] virtual client::Instant timer() const { return client::kNever; }
};

}  // namespace pawl::drill
