// Keeps the leases of one client: renews them in time, and says of each at any moment what it is
// still worth. No thread, no clock, no lock: whoever drives the machine drives this too.
//
//   const LeaseNumber lease = keeper.adopt(held, {}, now);
//   at keeper.next_timer(): keeper.timer(now);
//   for (Completion& done : machine.take_completions()) if (!keeper.take(done, now)) …somebody else's…
//   for (Change& change : keeper.take_changes()) …tell the holder…
//
//   granted            deadline − TTL/2       deadline − TTL/6        deadline (G7)
//      │  renewals from TTL/3 on │                   │                   │
//      ├────────── held ─────────┼───── at risk ─────┼──── uncertain ────┼── lost ──▶
//
// A renewal that is answered moves the deadline, and brings a lease that is at risk back. Nothing
// brings an uncertain one back: its holder has been told to stop. The answer of look() depends on
// `now` alone, not on whether timer() was called in time, so a process that was frozen learns the
// truth on its first call (hard case 1).
//
// A connection that went silent is given up while there is still time to renew over another: after
// a sixth of the shortest TTL held. So renewals are tried at a third, a half and two thirds of it,
// before the lease is uncertain.
//
// Everything costs O(log n) per lease. What is due is renewed together, with what would be due soon
// after.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "client/agenda.h"
#include "client/calls.h"
#include "client/machine.h"
#include "client/time.h"
#include "pawl/types.h"

namespace pawl::client {

using LeaseNumber = Number<struct LeaseNumberTag>;  // Of this keeper; never used twice.

// How the client keeps one lease.
struct KeepOptions {
  Millis max_hold{0};        // 0 = no cap
  Millis progress_every{0};  // 0 = renewed whether or not the work gets on
};

struct Standing {
  LeaseState state = LeaseState::kLost;
  std::string reason = {};  // why it is not held; empty when it is
  Instant deadline{};
};

struct Change {
  LeaseNumber lease;
  LeaseState state;
  std::string reason;
  bool explains = false;  // The state is known already; only the reason is new.
};

class Keeper {
 public:
  struct Counters {
    std::uint64_t renewals = 0;          // leases renewed
    std::uint64_t renewal_commands = 0;  // that it took
    std::uint64_t renewal_failures = 0;  // leases whose renewal was refused or not answered
    std::uint64_t lost = 0;              // leases that ended without being released
  };

  // How long the machine believes in a connection that owes an answer.
  enum class Patience : std::uint8_t { kByShortestLease, kAsGiven };

  Keeper(Machine& machine, Random& random, Patience patience = Patience::kByShortestLease)
      : machine_(machine), random_(random), patience_(patience) {}

  LeaseNumber adopt(const Held& held, const KeepOptions& keep, Instant now);
  // What the lease is worth now. Lost, if it was forgotten.
  [[nodiscard]] Standing look(LeaseNumber lease, Instant now);
  // The work is getting on.
  void progress(LeaseNumber lease, Instant now);
  // Gives it back: not renewed any more, lost with the reason "released" (which is no change
  // anybody is told of), and forgotten, unless it was lost before: then the reason stays known. The
  // machine goes on with the call after `give_up` until confirmed or the TTL is over; also for a
  // lease that pawld would not renew: one that is being broken is held there until its TTL is over,
  // unless it is given back. Nothing when it was released before.
  std::optional<CallId> release(LeaseNumber lease, Instant give_up, Instant now);
  // Lost from now on, for a reason that lies outside.
  void end(LeaseNumber lease, std::string reason);
  // Nobody will ask for it again.
  void forget(LeaseNumber lease);
  [[nodiscard]] bool knows(LeaseNumber lease) const { return entries_.contains(lease); }

  // True: it was a renewal of the keeper's own.
  bool take(const Completion& done, Instant now);
  void timer(Instant now);
  [[nodiscard]] Instant next_timer() const;
  [[nodiscard]] std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

  [[nodiscard]] std::vector<LeaseNumber> leases() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  struct Entry {
    LeaseId lease;
    Millis ttl{0};
    Instant deadline;
    Instant capped_at = kNever;  // by max_hold
    Millis progress_every{0};
    Instant progressed;
    LeaseState state = LeaseState::kHeld;
    bool final = false;        // No renewal can move the deadline any more: max_hold.
    bool withheld = false;     // Not renewed until the work gets on.
    bool refused = false;      // pawld does not renew it any more: over, or being broken.
    bool released = false;     // pawld was told.
    bool at_stake = false;     // is in at_stake_
    std::string trouble = {};  // why the newest renewal came to nothing
    std::string reason = {};
    Instant renew_at = kNever;  // its place in renewals_
    Instant judge_at = kNever;  // its place in judgements_
  };

  void stake(Entry& entry);
  void unstake(Entry& entry);
  void tell_patience();
  void judge(LeaseNumber number, Entry& entry, Instant now);
  void turn(LeaseNumber number, Entry& entry, LeaseState state, std::string reason);
  [[nodiscard]] static LeaseState worth(const Entry& entry, Instant now);
  [[nodiscard]] static std::string why(const Entry& entry);
  void renewed(LeaseNumber number, Entry& entry, Instant sent, Millis answered, Instant now);
  void over(LeaseNumber number, Entry& entry, Instant now);
  void explain(LeaseNumber number, const Result<Renewal>& answer);
  void failed(LeaseNumber number, Entry& entry, const std::string& why, Instant now);
  void renew_due(Instant now);
  [[nodiscard]] bool gets_on(Entry& entry, Instant now) const;
  void send(std::vector<LeaseNumber> batch, Instant now);
  void plan_renewal(LeaseNumber number, Entry& entry, Instant at);
  void plan_judgement(LeaseNumber number, Entry& entry);
  [[nodiscard]] Nanos up_to(Nanos span);

  Machine& machine_;
  Random& random_;
  const Patience patience_;
  std::map<Millis, std::size_t> at_stake_;  // how many leases of each TTL are being renewed
  std::uint64_t last_number_ = 0;
  std::unordered_map<LeaseNumber, Entry> entries_;
  Agenda<LeaseNumber> renewals_;
  Agenda<LeaseNumber> judgements_;
  std::unordered_map<CallId, std::vector<LeaseNumber>> under_way_;
  std::unordered_map<CallId, LeaseNumber> inquiries_;  // how it ended
  std::vector<Change> changes_;
  Counters counters_;
};

}  // namespace pawl::client
