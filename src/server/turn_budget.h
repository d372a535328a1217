// The budget of a turn: how much work one turn of the engine may do, and whose it is next when there
// is more (G10). Work is counted, not timed: commands, nodes that the core visited and bytes that
// were written, so the same input always takes the same turns.
//
//   budget.begin_turn(ready);                     // whoever had least comes first
//   while (budget.left() || (budget.reserve_left() && command is one that is served first)) {
//     … serve it …  budget.charge(session, nodes, bytes);
//   }
//   budget.end_turn(all were served);
//
// The order is that of start-time fair queueing: a connection that asked for much waits behind one
// that asked for little, however many of the former there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "server/session.h"

namespace pawl::server {

class TurnBudget {
 public:
  explicit TurnBudget(std::uint64_t per_turn) : per_turn_(per_turn) {}

  // Puts `ready` into the order in which it is to be served, if the turn before left some behind.
  void begin_turn(std::vector<Session*>& ready) {
    spent_ = 0;
    if (!behind_ || ready.empty()) return;
    std::stable_sort(ready.begin(), ready.end(), [this](const Session* a, const Session* b) {
      return start_of(*a) < start_of(*b);
    });
    served_up_to_ = start_of(*ready.front());
  }
  // One command of the session was served.
  void charge(Session& session, std::uint64_t nodes, std::uint64_t bytes) {
    const std::uint64_t work = limits::kWorkPerCommand + nodes * limits::kWorkPerNode + bytes;
    spent_ += work;
    session.work_end = start_of(session) + work;
    latest_end_ = std::max(latest_end_, session.work_end);
  }
  void end_turn(bool all_served) {
    behind_ = !all_served;
    if (all_served) served_up_to_ = latest_end_;
  }

  // Whether the turn may serve another command of any kind.
  [[nodiscard]] bool left() const { return spent_ < per_turn_; }
  // The same for commands that are served first: as much again is kept for them.
  [[nodiscard]] bool reserve_left() const { return spent_ < 2 * per_turn_; }
  // What this turn, or the last one, has done.
  [[nodiscard]] std::uint64_t spent() const { return spent_; }

 private:
  [[nodiscard]] std::uint64_t start_of(const Session& session) const {
    return std::max(session.work_end, served_up_to_);
  }

  const std::uint64_t per_turn_;
  std::uint64_t spent_ = 0;
  bool behind_ = false;  // the last turn left somebody for this one
  // Virtual time, in work: a connection that was served to the end of what it asked lags behind it.
  std::uint64_t served_up_to_ = 0;
  std::uint64_t latest_end_ = 0;
};

}  // namespace pawl::server
