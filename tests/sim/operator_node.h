// A simulated operator with a connection of its own, who meddles: asks again with other people's request ids, breaks
// leases, cancels waits, sends renewals and releases of leases that are over, and looks.
#pragma once

#include <map>

#include "sim/history.h"
#include "sim/line.h"

namespace pawl::sim {

class OperatorNode {
 public:
  OperatorNode(World& world, Network& network, Rate rate, std::vector<std::string> locks, History& history);

  void begin() { pump(); }
  void wind_down() { winding_down_ = true; }

 private:
  enum class What { kReplay, kInspect, kBreak, kCancel, kRelease, kRenew };
  struct Asked {
    What what;
    std::size_t index;  // In the history's list of its kind.
  };

  void pump();
  void meddle();
  void replay(const Attempt& attempt);
  void inspect();
  void break_lease(const Attempt& attempt);
  void cancel_wait(const Attempt& attempt);
  void touch_again(const Attempt& attempt);
  void ask(std::vector<std::string> words, What what, std::size_t index);
  void answered(const Asked& asked, const Result<wire::Value>& answer);
  void inspected(Sighting& sighting, const wire::Value& value);

  World& world_;
  const std::vector<std::string> locks_;
  History& history_;
  Line line_;
  std::map<client::CallId, Asked> asked_;
  client::Instant act_at_{};
  bool winding_down_ = false;
};

}  // namespace pawl::sim
