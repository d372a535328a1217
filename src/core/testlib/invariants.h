// What must hold of the core at every moment, and between any two: a second opinion that shares no
// code with the rules. The model test and the simulator ask it after each step.
//
//   Snapshot before = snapshot(core, now);
//   core.apply(input, now);
//   const Snapshot after = snapshot(core, now);
//   for (const std::string& broken : check_step(before, after, core.output())) complain(broken);
//
// A step is any number of inputs and ticks; Output is what they caused, not yet cleared. A restart
// is no step: take a new snapshot after it. Everything here is linear in what exists or worse: for
// tests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/core.h"

namespace pawl::core {

// A holder's place at a lock: live, or closed for its DELAY.
struct Holding {
  Token token;
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;
  std::optional<std::uint32_t> slot;
  bool live = true;
  bool breaking = false;
  Millis expires_in{0};
};

struct WaiterState {
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;
  Tick arrived{};
  std::vector<std::string> locks;
};

struct Snapshot {
  struct OfLock {
    LockView view;
    std::vector<Holding> holdings;  // in order of grant
    std::vector<WaiterId> queue;    // in order of arrival, all of it
  };
  Now at;
  Totals totals;
  std::map<std::string, OfLock> locks;
  std::map<WaiterId, WaiterState> waiters;
  bool restoring = false;  // Nothing is granted for now.
};

[[nodiscard]] Snapshot snapshot(const Core& core, Now now);

// Each string names one thing that does not hold; none when all is well.
[[nodiscard]] std::vector<std::string> check_state(const Snapshot& state);
// The state after, and what became of the state before.
[[nodiscard]] std::vector<std::string> check_step(const Snapshot& before, const Snapshot& after,
                                                  const Output& output);
// For a step of one input that was refused: nothing may have changed.
[[nodiscard]] std::vector<std::string> check_unchanged(const Snapshot& before,
                                                       const Snapshot& after);

// Which waiters still expect an answer. Each waiter gets exactly one (a Queued in between does not
// count), at once or when its wait ends; one that hung up gets none.
class PendingReplies {
 public:
  void asked(WaiterId waiter) { open_.insert(waiter); }
  void hung_up(WaiterId waiter) { open_.erase(waiter); }
  // What a step answered, and the state after it: a waiter that was not answered must be queued.
  [[nodiscard]] std::vector<std::string> settle(const std::vector<Reply>& replies,
                                                const Snapshot& after);
  void restarted() { open_.clear(); }

 private:
  std::set<WaiterId> open_;
};

}  // namespace pawl::core
