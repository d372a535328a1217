// Everybody who uses pawld in a run: clients with libpawl, plain clients, observers and an operator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/client_node.h"
#include "sim/observer_node.h"
#include "sim/operator_node.h"
#include "sim/plain_node.h"
#include "sim/simulation.h"

namespace pawl::sim {

// Enough after the storm for every takeover, wait, lease and retry to end (P7).
inline constexpr Nanos kCalm = std::chrono::seconds(30);

// What the users of a run are attached to.
struct Surroundings {
  World& world;
  Network& network;
  GuardModel& guard;
  const Workload& workload;
  const ServerWatch& watch;
  History& history;
  std::vector<std::string>& faults;
};

class Users {
 public:
  // `rate` returns the rate of the next one's clock.
  Users(const Plan& plan, const Surroundings& around, const std::function<Rate()>& rate,
        PlainNode::WaitsOn waits_on);

  void begin();
  // The storm is over: they finish what they do. Later the operator is a candidate: every observer
  // sees the leader, and in the end that there is none.
  void wind_down();
  // Nobody does or wants anything any more.
  void check_all_are_idle();
  void check_observers(Token leader);
  // What happened to them, for the verdict.
  void count(Verdict& verdict) const;

  [[nodiscard]] OperatorNode& the_operator() { return operator_; }

 private:
  [[nodiscard]] Moment storm_end() const { return Moment(Millis(plan_.storm_ms)); }

  const Plan plan_;
  const Surroundings around_;
  OperatorNode operator_;
  std::vector<std::unique_ptr<ClientNode>> clients_;
  std::vector<std::unique_ptr<PlainNode>> plain_;
  std::vector<std::unique_ptr<ObserverNode>> observers_;
};

}  // namespace pawl::sim
