// Follows who holds one lock: the leader of an election. Sans-I/O, on the machine's connection,
// like the keeper.
//
//   LeaderWatch watch(machine, "elections/scheduler", now);
//   for (const Completion& done : machine.take_completions()) if (!watch.take(done, now)) …somebody else's…
//   for (const Sighting& seen : machine.take_sightings()) watch.take(seen, now);
//   for (auto& change : watch.take_changes()) …tell it…
//
// The first change is who leads now, nobody included; then each grant and each end is one, in the
// order of the events. Events do not carry META, so a grant is followed by an INSPECT, and later
// changes wait for its answer. When that shows someone newer, the grant is told without its value,
// because nobody can learn that any more.
//
// Completions first, then sightings, as above: an event taken before the answer that preceded it
// might be lost.
//
// The stream of one connection is in order: whatever was told before an INSPECT is answered is
// older than the answer. An event behind the answer may still be older; tokens, which only grow,
// tell.
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
  std::optional<std::string> value;  // nothing: not known; empty when it gave none
  bool operator==(const LeaderView&) const = default;
};
using LeaderNow = std::optional<LeaderView>;  // nothing: nobody leads

// The newest holder in a reply to INSPECT.
[[nodiscard]] LeaderNow read_leader(const wire::Value& lock);

class LeaderWatch {
 public:
  LeaderWatch(Machine& machine, std::string name, Instant now);

  // True: it was ours.
  bool take(const Sighting& seen, Instant now);
  bool take(const Completion& done, Instant now);
  // An error is the last: pawld refuses to let us watch.
  [[nodiscard]] std::vector<Result<LeaderNow>> take_changes() {
    return std::exchange(changes_, {});
  }
  // Nothing is told any more.
  void stop(Instant now);

 private:
  void take_event(const wire::EventPush& event, std::uint64_t order, Instant now);
  void queue(LeaderNow leader, Instant now);
  void inspect(Instant now);
  void inspected(const wire::Value& lock, std::uint64_t order, Instant now);
  [[nodiscard]] bool settled(const LeaderNow& change, const LeaderNow& shown) const;
  void end(const Error& why);

  Machine& machine_;
  const std::string name_;
  const CallId observation_;
  std::optional<CallId> inspection_;  // under way
  bool looking_ = true;            // at how things are, because nothing or not everything was heard
  std::uint64_t looked_ = 0;       // the place of the answer to the last such look
  bool over_ = false;              // stopped, or refused: nothing is told any more
  bool told_ = false;              // the first change has been told
  Token leads_{};                  // as last queued or told; 0: nobody
  Token newest_{};                 // grants up to this one are no news
  std::deque<LeaderNow> waiting_;  // changes that wait for the value of the first, in order
  std::size_t asked_ = 0;          // so many of them were there when the INSPECT was sent
  std::vector<Result<LeaderNow>> changes_;
};

}  // namespace pawl::client
