// Keeps the leases of one client: renews them in time and knows the state of each at any moment.
// The only place where renewals are scheduled; libpawl (driver.h) and `pawl run` both use it. Has
// no thread, clock or lock: the driver of the machine drives the keeper too.
//
//   const LeaseNumber lease = keeper.add(granted, {}, now);
//   // When keeper.next_timer() is due:
//   keeper.on_timer(now);
//   for (Completion& done : machine.take_completions()) {
//     if (!keeper.on_completion(done, now)) handle_other_call(done);
//   }
//   for (LeaseChange& change : keeper.take_changes()) notify_holder(change);
//
//   granted            deadline − TTL/2       deadline − TTL/6        deadline (G7)
//      │  renewals from TTL/3 on │                   │                   │
//      ├────────── held ─────────┼───── at risk ─────┼──── uncertain ────┼── lost ──▶
//
// An answered renewal moves the deadline, and a lease that was at risk is held again. An uncertain
// lease never recovers: its holder was notified to stop. status() depends on `now` alone, not on
// whether on_timer() ran in time, so a frozen process gets the right answer on its first call (hard
// case 1).
//
// A silent connection is dropped after a sixth of the shortest TTL held, so that there is time to
// renew over another one: renewals are tried at one third, one half and two thirds of the TTL,
// before the lease is uncertain.
//
// Every operation costs O(log n) in the number of leases. Leases that are due at about the same
// time are renewed by one command.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "client/calls.h"
#include "client/machine.h"
#include "client/time.h"
#include "client/timer_queue.h"
#include "pawl/types.h"

namespace pawl::client {

using LeaseNumber = Number<struct LeaseNumberTag>;  // Of this keeper; never used twice.

// How the client keeps one lease.
struct KeepOptions {
  Millis max_hold{0};        // 0 = no cap
  Millis progress_every{0};  // 0 = renewed without progress reports
  // How long before its deadline the lease becomes uncertain, and is renewed no more. At most half
  // of the TTL; nothing = TTL/6.
  std::optional<Millis> uncertain_before = {};
};

struct LeaseStatus {
  LeaseState state = LeaseState::kLost;
  std::string reason = {};  // why it is not held; empty when it is
  // How it ended, once pawld has said so: "broken by ops: host is gone". Empty before.
  std::string ending = {};
  Instant deadline{};
  bool final = false;          // max_hold is near: no renewal moves the deadline any more
  std::uint64_t renewals = 0;  // answered so far
  Millis expires_in{0};        // as pawld answered the newest of them
};

struct LeaseChange {
  LeaseNumber lease;
  LeaseState state;
  std::string reason;
  bool reason_only = false;  // The state was reported before; only the reason is new.
};

// Somebody has asked the holder to let go. It decides itself; the lease is renewed as before.
struct LeaseAsk {
  LeaseNumber lease;
  wire::ReleaseWanted wanted;
};

class Keeper {
 public:
  struct Counters {
    std::uint64_t renewals = 0;          // leases renewed
    std::uint64_t renewal_commands = 0;  // commands that took
    std::uint64_t renewal_failures = 0;  // leases whose renewal was refused or not answered
    std::uint64_t lost = 0;              // leases that ended without being released
  };

  // How long the machine waits for an overdue answer before it drops the connection: shortened to
  // suit the shortest lease, or exactly as its options say.
  enum class AnswerTimeout : std::uint8_t { kFromShortestLease, kAsConfigured };

  Keeper(Machine& machine, Random& random,
         AnswerTimeout answer_timeout = AnswerTimeout::kFromShortestLease)
      : machine_(machine), random_(random), answer_timeout_(answer_timeout) {}

  // Starts to renew a lease that was just granted.
  LeaseNumber add(const GrantedLease& granted, const KeepOptions& options, Instant now);
  // The state of the lease at `now`. kLost for a lease that was forgotten.
  [[nodiscard]] LeaseStatus status(LeaseNumber lease, Instant now);
  // The holder reports that its work progresses; see KeepOptions::progress_every.
  void progress(LeaseNumber lease, Instant now);
  // Stops renewing without releasing: the lease ends at its deadline unless released before.
  void stop_renewing(LeaseNumber lease);
  // Stops renewing and sends RELEASE. The lease is kLost ("released"), which is not reported as a
  // change, and forgotten, unless it was lost before: then its reason is kept. The machine repeats
  // the call after `give_up` until it is confirmed or the TTL has passed. RELEASE is also sent for
  // a lease that pawld refused to renew: a broken lease keeps its locks closed until its TTL ends
  // or it is released. Nothing is sent, and nothing returned, if it was released before.
  std::optional<CallId> release(LeaseNumber lease, Instant give_up, Instant now);
  // Lost from now on, for a reason outside of the keeper.
  void mark_lost(LeaseNumber lease, std::string reason);
  // Drops all knowledge of the lease.
  void forget(LeaseNumber lease);
  [[nodiscard]] bool contains(LeaseNumber lease) const { return entries_.contains(lease); }
  // Whether pawld was asked how the lease ended, and has yet to answer.
  [[nodiscard]] bool awaits_ending(LeaseNumber lease) const;

  // True when the call was one of the keeper's own.
  bool on_completion(const Completion& done, Instant now);
  void on_timer(Instant now);
  [[nodiscard]] Instant next_timer() const;
  [[nodiscard]] std::vector<LeaseChange> take_changes() { return std::exchange(changes_, {}); }
  // Each ask once; of asks that came between two renewals only the newest.
  [[nodiscard]] std::vector<LeaseAsk> take_asks() { return std::exchange(asks_, {}); }

  [[nodiscard]] std::vector<LeaseNumber> leases() const;
  [[nodiscard]] bool renews_any() const { return !renewed_ttls_.empty(); }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  struct Entry {
    LeaseId lease;
    Millis ttl{0};
    Instant deadline;
    Instant capped_at = kNever;  // the end by max_hold
    Millis progress_every{0};
    Instant progressed;      // the last report of progress
    Nanos uncertain_before;  // see KeepOptions
    LeaseState state = LeaseState::kHeld;
    bool final = false;              // No renewal can move the deadline any more: max_hold.
    bool renewal_suspended = false;  // until progress is reported
    bool renewal_stopped = false;    // by stop_renewing()
    bool refused = false;            // pawld refused to renew: the lease is over or being broken
    bool released = false;           // RELEASE was sent
    bool ttl_counted = false;        // is counted in renewed_ttls_
    std::string last_failure = {};   // why the newest renewal failed
    std::string reason = {};
    std::string ending = {};
    std::uint64_t renewals = 0;
    std::uint64_t heard_ask = 0;  // the newest that was reported
    bool ask_queried = false;     // RENEW … ASKS is under way
    Millis expires_in{0};
    Instant renew_at = kNever;     // slot in renewal_timers_
    Instant state_timer = kNever;  // slot in state_timers_
  };

  void count_ttl(Entry& entry);
  void uncount_ttl(Entry& entry);
  void update_answer_timeout();
  void update_state(LeaseNumber number, Entry& entry, Instant now);
  void set_state(LeaseNumber number, Entry& entry, LeaseState state, std::string reason);
  [[nodiscard]] static LeaseState state_at(const Entry& entry, Instant now);
  [[nodiscard]] static std::string reason_for(const Entry& entry);
  void on_renewed(LeaseNumber number, Entry& entry, Instant sent, Millis answered, Instant now);
  void query_ask(LeaseNumber number, Entry& entry, Instant now);
  void on_ask(LeaseNumber number, const Result<RenewResult>& answer);
  void on_lease_over(LeaseNumber number, Entry& entry, Instant now);
  void on_end_reason(LeaseNumber number, const Result<RenewResult>& answer);
  void on_renewal_failed(LeaseNumber number, Entry& entry, const std::string& why, Instant now);
  void send_due_renewals(Instant now);
  [[nodiscard]] bool made_progress(Entry& entry, Instant now) const;
  void send_renewals(std::vector<LeaseNumber> batch, Instant now);
  void schedule_renewal(LeaseNumber number, Entry& entry, Instant at);
  void schedule_state_timer(LeaseNumber number, Entry& entry);
  [[nodiscard]] Nanos random_up_to(Nanos span);

  Machine& machine_;
  Random& random_;
  const AnswerTimeout answer_timeout_;
  std::map<Millis, std::size_t> renewed_ttls_;  // how many leases of each TTL are being renewed
  std::uint64_t last_number_ = 0;
  std::unordered_map<LeaseNumber, Entry> entries_;
  TimerQueue<LeaseNumber> renewal_timers_;
  TimerQueue<LeaseNumber> state_timers_;
  std::unordered_map<CallId, std::vector<LeaseNumber>> in_flight_;
  std::unordered_map<CallId, LeaseNumber> end_reason_queries_;  // RENEW, to learn how it ended
  std::unordered_map<CallId, LeaseNumber> ask_queries_;         // RENEW … ASKS, for the text
  std::vector<LeaseChange> changes_;
  std::vector<LeaseAsk> asks_;
  Counters counters_;
};

}  // namespace pawl::client
