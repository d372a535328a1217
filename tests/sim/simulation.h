// One run of the whole system from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "sim/history.h"
#include "sim/plan.h"

namespace pawl::sim {

struct Verdict {
  std::vector<std::string> faults;  // Violated properties, as sentences; empty when all held.
  std::uint64_t grants = 0;
  std::uint64_t crashes = 0;
  std::uint64_t refusals = 0;      // Of damaged stores.
  std::uint64_t effects = 0;       // At the guarded resources.
  std::uint64_t plain_grants = 0;  // Of the grants: to clients without libpawl.
  std::uint64_t leaders = 0;       // Received by observers.
  std::uint64_t raises = 0;        // Answered.
  std::uint64_t restores = 0;      // Of lost stores, from backups.
  std::uint64_t takeovers = 0;     // Of a shared store, the first included.
  std::uint64_t fingerprint = 0;   // The same plan gives the same one.
  Nanos simulated{0};
  // Only of a traced plan.
  std::string trace;
  History history;
};

[[nodiscard]] Verdict simulate(const Plan& plan);
// Of a plan with nodes; simulate() calls it.
[[nodiscard]] Verdict simulate_cluster(const Plan& plan);

// The smallest plan found that still violates the same property: fewer troubles, clients, seconds.
[[nodiscard]] Plan shrink(const Plan& failing);

}  // namespace pawl::sim
