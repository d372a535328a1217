// Whole-system runs on virtual time: core, journal on a simulated disk, sessions, client machine; lost and delayed
// messages, crashes that lose or tear what was not synced, pauses, drifting clocks. Hard cases 1, 2, 3, 8, 9, 18, 19, 27,
// 28, 30, 34, 35.
//
//   simulation_test                       the usual seeds
//   PAWL_SIM_SEED=17 simulation_test      one seed, with its trace
//   PAWL_SIM_SEEDS=5000 simulation_test   more of them
#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace pawl::sim {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

std::string tail(const std::string& trace, std::size_t bytes) {
  return trace.size() <= bytes ? trace : "…" + trace.substr(trace.size() - bytes);
}

void report(std::uint64_t seed, const Verdict& verdict) {
  for (const std::string& fault : verdict.faults) ADD_FAILURE() << "seed " << seed << ": " << fault;
  if (!verdict.faults.empty()) {
    std::printf("%s\nreplay it with: PAWL_SIM_SEED=%llu build/tests/simulation_test\n",
                tail(verdict.trace, 4000).c_str(), static_cast<unsigned long long>(seed));
  }
}

TEST(Simulation, EveryPropertyHoldsForEverySeed) {
  if (const std::uint64_t one = setting("PAWL_SIM_SEED", 0); one != 0) {
    const Verdict verdict = simulate(one);
    std::printf("%s", verdict.trace.c_str());
    return report(one, verdict);
  }
  const std::uint64_t seeds = setting("PAWL_SIM_SEEDS", 300);
  std::uint64_t grants = 0, crashes = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    const Verdict verdict = simulate(seed);
    report(seed, verdict);
    grants += verdict.grants;
    crashes += verdict.crashes;
  }
  std::printf("%llu seeds, %llu grants, %llu crashes\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(grants), static_cast<unsigned long long>(crashes));
  // A run in which nothing happens proves nothing.
  EXPECT_GT(grants, seeds * 50);
  EXPECT_GT(crashes, seeds * 2);
}

TEST(Simulation, OneSeedIsOneHistory) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Verdict first = simulate(seed), second = simulate(seed);
    EXPECT_EQ(first.fingerprint, second.fingerprint) << seed;
    EXPECT_EQ(first.grants, second.grants) << seed;
  }
}

}  // namespace
}  // namespace pawl::sim
