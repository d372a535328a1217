// Something that a poll() loop serves: a worker's pipe, the proxy, the connection that observes
// pawld. A Scenario waits for all of them at once, on one thread.
#pragma once

#include <poll.h>

#include <span>
#include <vector>

#include "client/time.h"

namespace pawl::drill {

class Pollable {
 public:
  virtual ~Pollable() = default;

  // The descriptors and events to poll for.
  [[nodiscard]] virtual std::vector<pollfd> interest() const = 0;
  // After poll(): `ready` has the entries of the last interest(), in order, with `revents` set.
  // Also called when none of them is ready.
  virtual void on_ready(std::span<const pollfd> ready) = 0;
  // on_ready() must be called at this time at the latest.
  [[nodiscard]] virtual client::Instant next_timer() const { return client::kNever; }
};

}  // namespace pawl::drill
