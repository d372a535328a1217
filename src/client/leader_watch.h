// Follows the leader of an election: the holder of one lock. Without I/O, on the machine's
// connection, like the keeper.
//
//   LeaderWatch watch(machine, "elections/scheduler", now);
//   for (const Completion& done : machine.take_completions()) {
//     if (!watch.on_completion(done, now)) handle_other_call(done);
//   }
//   for (const ObservedEvent& event : machine.take_observed_events()) watch.on_event(event, now);
//   for (auto& change : watch.take_changes()) report(change);
//
// The first change is the current leader, or none. Then each grant and each end is a change, in the
// order of the events. Events do not carry META, so a grant is followed by an INSPECT, and later
// changes wait for its answer. When the answer shows a newer leader, the grant is reported without
// its value, which nobody can learn any more.
//
// Completions first, then events, as above: an event handled before the answer that preceded it
// might be lost.
//
// The stream of one connection is in order: an event received before the answer to INSPECT is older
// than the answer. An event received after it may still be older; the tokens, which only grow, tell
// them apart.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/calls.h"
#include "client/machine.h"

namespace pawl::client {

// The META key of a leader's value.
inline constexpr std::string_view kLeaderValue = "value";

struct LeaderView {
  Token token;
  std::string owner;
  std::optional<std::string> value;  // nullopt: not known; empty: the leader set none
  bool operator==(const LeaderView&) const = default;
};
using MaybeLeader = std::optional<LeaderView>;  // nullopt: no leader

// The newest holder in a reply to INSPECT.
[[nodiscard]] MaybeLeader read_leader(const wire::Value& lock);

class LeaderWatch {
 public:
  LeaderWatch(Machine& machine, std::string name, Instant now);

  // True when it belongs to this watch.
  bool on_event(const ObservedEvent& observed, Instant now);
  bool on_completion(const Completion& done, Instant now);
  // An error is the last one: pawld refused the observation.
  [[nodiscard]] std::vector<Result<MaybeLeader>> take_changes() {
    return std::exchange(changes_, {});
  }
  // Ends the watch: no more changes.
  void stop(Instant now);

 private:
  void handle_event(const wire::EventPush& event, std::uint64_t order, Instant now);
  void queue(MaybeLeader leader, Instant now);
  void inspect(Instant now);
  void inspected(const wire::Value& lock, std::uint64_t order, Instant now);
  [[nodiscard]] bool is_resolved(const MaybeLeader& change, const MaybeLeader& shown) const;
  void end(const Error& why);

  Machine& machine_;
  const std::string name_;
  const CallId observation_;
  std::optional<CallId> inspection_;  // in flight
  bool resyncing_ = true;             // the next INSPECT reads the state anew: start, or a reset
  std::uint64_t resync_order_ = 0;    // the order of the answer to the last such INSPECT
  bool ended_ = false;                // stopped, or refused: no more changes
  bool first_reported_ = false;
  Token leader_token_{};                // as last queued or reported; 0: no leader
  Token newest_token_{};                // grants up to this token are old
  std::deque<MaybeLeader> pending_;     // changes that wait for the value of the first, in order
  std::size_t pending_at_inspect_ = 0;  // how many of them there were when INSPECT was sent
  std::vector<Result<MaybeLeader>> changes_;
};

using WatchNumber = Number<struct WatchTag>;  // Never used twice.

// All leader watches of one client, each with its callback. For the driver, under its lock; no I/O.
class LeaderWatches {
 public:
  using Callback = std::function<void(const Result<MaybeLeader>&)>;
  struct Notification {
    Callback callback;
    Result<MaybeLeader> change;
  };

  explicit LeaderWatches(Machine& machine) : machine_(machine) {}

  WatchNumber add(std::string name, Callback callback, Instant now);
  void remove(WatchNumber number, Instant now);
  void remove_all(Instant now);

  // True when it belongs to one of the watches.
  bool on_completion(const Completion& done, Instant now);
  // Handles the machine's events, and returns the callbacks to run, in order.
  [[nodiscard]] std::vector<Notification> take_notifications(Instant now);

 private:
  struct Watch {
    LeaderWatch leader;
    Callback callback;
  };

  Machine& machine_;
  std::uint64_t last_number_ = 0;
  std::map<WatchNumber, Watch> watches_;
};

}  // namespace pawl::client
