// Many sessions at once, each on a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/history.h"
#include "conformance/trial.h"

namespace pawl::conformance {

// The order of what happened in one race, as far as it can be known from outside.
class Stamps {
 public:
  std::uint64_t next() { return ++last_; }

 private:
  std::atomic<std::uint64_t> last_{0};
};

// Runs `work(session, index)` on `count` threads, with a session each, and waits for all. What one
// of them throws as Failed is thrown here.
void together(Trial& trial, std::size_t count,
              const std::function<void(Session&, std::size_t)>& work);

struct RaceOptions {
  Isolation isolation = Isolation::kDefault;
  std::size_t racers = 8;
};

// Holders take over from each other while their predecessors still write: tokens from a moving
// counter minus 0 … 3, writes, roll-backs and advances. Fails with the first violation there is
// (history.h).
void race_for_one_resource(Trial& trial, const RaceOptions& options);

}  // namespace pawl::conformance
