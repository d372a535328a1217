// Which of several pawld to try next: the addresses that were configured, and those that a standby
// has named. No I/O, no clock.
//
//   Nodes nodes({{"db1"}, {"db2"}});
//   connect(nodes.current());
//   nodes.on_standby("db3:7295");  // It named the active one: current() is db3, at once.
//   nodes.on_failed();             // db3 did not answer: the next one.
//   nodes.on_served();             // It has answered a call.
//
// The nodes are tried in rounds. In a round each is tried once, without a pause; between rounds the
// caller pauses, so that a cluster without an active pawld is not asked in a tight loop. A standby
// is believed once per round: two that name each other cannot keep a client busy.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "client/address.h"

namespace pawl::client {

class Nodes {
 public:
  enum class Next : std::uint8_t { kAtOnce, kAfterPause };

  // Empty: one node, whose address only the driver knows.
  explicit Nodes(std::vector<Address> configured);

  [[nodiscard]] const Address& current() const { return nodes_[current_].address; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  // The one that comes `step` places behind the current one; 0 is the current one.
  [[nodiscard]] const Address& behind_current(std::size_t step) const {
    return nodes_[(current_ + step) % nodes_.size()].address;
  }
  // The caller has connected to this one, which is known.
  void use(const Address& address);

  // The current one could not be reached, or was lost before it answered a call.
  [[nodiscard]] Next on_failed();
  // The current one was lost after it had answered calls. It is tried last: if its machine is gone,
  // an attempt may cost a timeout, and a standby answers at once.
  [[nodiscard]] Next on_lost();
  // The current one stands by. `active`: the address that it named, or empty. One that is no
  // address is ignored, and so is one without TLS where TLS was configured, or the other way.
  [[nodiscard]] Next on_standby(std::string_view active);
  // The current one has answered a call.
  void on_served();

 private:
  struct Node {
    Address address;
    bool learnt = false;
    bool tried = false;  // in this round
  };

  [[nodiscard]] Next try_next();
  // The place of the named one; it is added if it is new. nullopt: not usable.
  [[nodiscard]] std::optional<std::size_t> find_or_learn(std::string_view active);
  void begin_round();

  std::vector<Node> nodes_;  // the configured ones, then at most limits::kNodesLearnt
  std::size_t current_ = 0;
};

}  // namespace pawl::client
