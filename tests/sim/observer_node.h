// A simulated observer: the real client::LeaderWatch on an election, and the real observation of
// all events beside it, on one connection. It looks away now and then and begins anew. What pawld
// sent to an observer on a perfect connection (server_watch.h) is what this one must have received,
// without a gap and in order, as long as pawld lived.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/leader_watch.h"
#include "sim/history.h"
#include "sim/line.h"
#include "sim/server_watch.h"

namespace pawl::sim {

class ObserverNode {
 public:
  ObserverNode(World& world, Network& network, int number, Rate rate, std::string lock,
               const ServerWatch& truth, History& history, std::vector<std::string>& faults);

  void begin();
  // Looks on without a break from now on.
  void wind_down() { winding_down_ = true; }
  // The last leader received; nothing yet: nullopt. Token 0: no leader.
  [[nodiscard]] std::optional<Token> leader() const { return leader_; }
  [[nodiscard]] int number() const { return number_; }

 private:
  void pump();
  void look_anew();
  void received(const client::MaybeLeader& leader);
  void take(const client::ObservedEvent& seen);
  // The place of an event, or of a lock's grant, in the truth.
  [[nodiscard]] std::optional<std::size_t> place_of(const wire::EventId& id) const;
  [[nodiscard]] std::optional<std::size_t> place_of_grant(Token token) const;
  void check_nobody_is_left_out(Token before, Token next);

  World& world_;
  const int number_;
  const std::string lock_;
  const ServerWatch& truth_;
  History& history_;
  std::vector<std::string>& faults_;
  Line line_;
  std::optional<client::LeaderWatch> watch_;
  std::optional<client::CallId> all_;
  std::optional<std::size_t> last_;  // The place of the event it received last.
  std::optional<Token> leader_;
  Token newest_{};  // Of those it received since it began.
  int stream_ = 0;
  client::Instant look_away_at_{};
  bool winding_down_ = false;
};

}  // namespace pawl::sim
