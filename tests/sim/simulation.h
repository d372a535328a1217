// One run of the whole system from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::sim {

struct Verdict {
  std::vector<std::string> faults;  // Violated properties, as sentences; empty when all held.
  std::uint64_t grants = 0;
  std::uint64_t crashes = 0;
  std::uint64_t fingerprint = 0;  // The same seed gives the same one.
  std::string trace;
};

[[nodiscard]] Verdict simulate(std::uint64_t seed);

}  // namespace pawl::sim
