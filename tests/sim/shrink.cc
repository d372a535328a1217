#include "sim/simulation.h"

namespace pawl::sim {
namespace {

// "P3", "G7": enough to say that it is the same bug.
std::string property_of(const Verdict& verdict) {
  return verdict.faults.empty() ? "" : verdict.faults.front().substr(0, 2);
}

}  // namespace

// Greedy, and again until nothing more can go. Leaving something out changes the whole run from
// there on, so this finds a small plan, not the smallest.
Plan shrink(const Plan& failing) {
  const std::string property = property_of(simulate(failing));
  Plan best = failing;
  best.traced = false;
  const auto try_it = [&](const Plan& plan) {
    if (property_of(simulate(plan)) != property) return false;
    best = plan;
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = 0; i < kTroubles.size(); ++i) {
      Plan plan = best;
      plan.without |= 1U << i;
      if (plan.without != best.without && try_it(plan)) smaller = true;
    }
    Plan fewer = best;
    if (--fewer.clients >= 1 && try_it(fewer)) smaller = true;
    Plan plainer = best;
    if (--plainer.plain >= 0 && try_it(plainer)) smaller = true;
    Plan unseen = best;
    if (--unseen.observers >= 0 && try_it(unseen)) smaller = true;
    Plan shorter = best;
    shorter.storm_ms = shorter.storm_ms * 3 / 4;
    if (shorter.storm_ms >= 100 && try_it(shorter)) smaller = true;
  }
  return best;
}

}  // namespace pawl::sim
