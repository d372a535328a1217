// A simulated operator with a connection of its own, that interferes: repeats other clients'
// request ids, breaks leases, cancels waits, sends renewals and releases of leases that are over,
// raises tokens, makes backups, and looks. When all is quiet, the operator leads an election for a
// while.
#pragma once

#include <map>
#include <set>

#include "sim/history.h"
#include "sim/line.h"

namespace pawl::sim {

class OperatorNode {
 public:
  OperatorNode(World& world, Network& network, Rate rate, std::vector<std::string> locks,
               History& history);

  void begin() { pump(); }
  void wind_down() { winding_down_ = true; }

  void back_up();
  // Any of those that pawld called whole since its store was last restored.
  [[nodiscard]] std::optional<std::string> some_backup();
  void forget_backups();

  // Takes the lock, and gives it back.
  void lead(const std::string& lock);
  void resign();
  [[nodiscard]] Token leads_with() const { return led_ ? led_->token : Token{}; }

 private:
  enum class What { kReplay, kInspect, kBreak, kCancel, kRelease, kRenew, kRaise, kBackup };
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
  void raise();
  void elected(const Result<client::GrantedLease>& held);
  void ask(std::vector<std::string> words, What what, std::size_t index);
  void answered(const Asked& asked, const Result<wire::Value>& answer);
  void inspected(Sighting& sighting, const wire::Value& value);

  World& world_;
  const std::vector<std::string> locks_;
  History& history_;
  Line line_;
  std::map<client::CallId, Asked> asked_;
  std::optional<client::CallId> campaign_;
  std::size_t campaign_attempt_ = 0;
  std::optional<client::GrantedLease> led_;
  std::vector<std::string> backups_;  // Asked for, in order.
  std::set<std::size_t> whole_;       // Those of them that are known to be.
  client::Instant act_at_{};
  bool winding_down_ = false;
};

}  // namespace pawl::sim
