// The core: which lease holds which lock, which requests wait, and which token comes next. Pure
// rules; no I/O, no thread, no clock.
//
//   core.load(key, value)…; core.loaded(high_water, now);
//   each turn:  core.apply(Acquire{…}, now)…;  core.tick(now);
//               const BatchId id = core.take_batch(batch);
//               if (id.value != 0) store.submit(batch, id, sink);
//               on sink.durable(id):  core.durable(id, later);  // a clock read after the sync
//               send core.output().replies whose `after` is durable;  core.output().clear();
//
// The same inputs give the same outputs, so the simulator, the property tests and the server run
// this very code. One thread owns it. Changes are visible to reads at once; the caller
// holds answers back until the batch they rest on (Reply::after, last_batch()) is durable.
//
// Cost: every input is O(locks named + holders of a LIMIT lock + what it hands on), independent of
// how many locks are held and how many wait (the position of a waiter: O(log waiters)); work()
// counts what is more than a fixed few. Expiry is O(1) per lease and TTL (timer_wheel.h). Memory per
// held lock: see lease_table.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/batch.h"
#include "base/limits.h"
#include "base/types.h"
#include "core/accounts.h"
#include "core/asks.h"
#include "core/changes.h"
#include "core/closed_locks.h"
#include "core/history.h"
#include "core/holders.h"
#include "core/inputs.h"
#include "core/outputs.h"
#include "core/requests.h"
#include "core/restore_wait.h"
#include "core/views.h"
#include "core/waiters.h"
#include "core/work_count.h"
#include "pawl/result.h"

namespace pawl::core {

struct Options {
  // Random in production, so that nobody can choose names that collide.
  std::uint64_t hash_seed = 0;
  Quota in_all = {};
  Quota per_user = {.leases = limits::kLeasesPerUser,
                    .waiters = limits::kWaitersPerUser,
                    .bytes = limits::kLeaseBytesPerUser};
  AskQuota asks = {};
  std::size_t history_epochs = limits::kHistoryEpochs;
  std::size_t history_bytes = limits::kHistoryBytes;
  std::size_t requests_remembered = limits::kRequestsRemembered;
  Millis request_memory = limits::kRequestMemory;
};

// What an operator may ask for when a lease ends.
struct EndOptions {
  bool skip_delay = false;  // Hand its locks on at once, whatever its DELAY.
  std::string_view reason = {};
};

class Core {
 public:
  explicit Core(Options options = {});
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // --- Starting ----------------------------------------------------------------------------------
  // Reserves room, when the store knows how many leases will come.
  void expect(std::uint64_t leases);
  // One record of the store, in any order; it replaces the one with the same key. kInvalid: it is
  // damaged, or contradicts another.
  Result<void> load(std::string_view key, std::string_view value);
  // The record with this key, if there is one, is not in the store any more.
  void unload(std::string_view key);
  // As if nothing had been loaded.
  void unload_all();
  // Everything is loaded. Tokens continue above `high_water`; every lease starts with its full TTL
  // at `now` (G4). One pass over the leases, which decodes and allocates nothing for each. kInvalid:
  // the records contradict each other, or `high_water`.
  Result<void> loaded(Token high_water, Now now);

  // No batch will hold more than this. What would be too much waits: expiries and grants from a
  // queue by themselves, other inputs at the caller's (batch_full()). Before the first input.
  void limit_batches(const BatchLimits& limits) { changes_.limit_batches(limits); }

  // --- Inputs ------------------------------------------------------------------------------------
  // Each is answered by one reply to its waiter, now or when its wait ends; Cancel by none. `now`
  // never goes back.
  void apply(const Acquire& input, Now now);
  void apply(const Renew& input, Now now);
  void apply(const Release& input, Now now);
  void apply(const Cancel& input, Now now);
  void apply(const CancelRequest& input, Now now);
  void apply(const Break& input, Now now);
  void apply(const Ask& input, Now now);
  void apply(const Raise& input, Now now);
  // Ends what is due, as far as the batch has room; next_deadline() is in the past if some is left.
  // After the turn's other inputs: a renewal read in the turn its lease falls due
  // wins.
  void tick(Now now);
  // The batch is durable: the TTLs of its grants begin at `now`, which was read after the sync.
  void durable(BatchId batch, Now now);

  // --- Outputs -----------------------------------------------------------------------------------
  // What the inputs since the last clear() caused. The caller clears it.
  Output& output() { return changes_.output(); }
  // Moves the changes since the last call into `batch` (replacing what it held) and returns their
  // id; 0 when none.
  BatchId take_batch(Batch& batch) { return changes_.take_batch(batch); }
  // The batch has no room for another input that changes something: take it first. Renewals, reads
  // and cancels need none.
  [[nodiscard]] bool batch_full() const { return changes_.full(); }
  // Whether take_batch() would return nothing.
  [[nodiscard]] bool batch_empty() const { return changes_.empty(); }
  // What a read must wait for: the id of the newest batch that holds any change, taken or not; 0
  // when all is durable.
  [[nodiscard]] BatchId last_batch() const { return changes_.last_batch(); }
  // When tick() next has something to do, at the latest; kNever when nothing is pending.
  [[nodiscard]] Tick next_deadline() const;

  // --- Reads -------------------------------------------------------------------------------------
  // With the holders that `page` asks for, in order of token.
  [[nodiscard]] LockView inspect(std::string_view lock, Now now, HoldersPage page = {}) const;
  // At most `count` locks whose name begins with `prefix` and, when that is given, is `visible`,
  // after bounded work. A lock that stays is seen once.
  [[nodiscard]] LocksPage list(std::string_view prefix, std::uint64_t cursor, std::size_t count,
                               Now now, const NameFilter& visible = {}) const;
  // The leases that held the lock and ended, newest first.
  [[nodiscard]] std::vector<EpochView> history(std::string_view lock, std::size_t count) const;
  // How a lease ended. Nothing: it is live, it never was, or its end is forgotten (after a restart,
  // or after limits::kHistoryEpochs more).
  [[nodiscard]] std::optional<Ending> ending_of(LeaseId lease) const {
    return history_.lost(lease).ending;
  }
  // The newest ask to let go of one of the locks of this lease. Nothing: it was not asked, or is
  // over.
  [[nodiscard]] std::optional<AskView> ask_for(LeaseId lease) const;
  // How many locks are asked for.
  [[nodiscard]] std::size_t asks() const { return asks_.size(); }
  // Whether an acquire with this request id would be a retry, which asks for nothing new.
  [[nodiscard]] bool remembers(std::string_view request) const {
    return !request.empty() && requests_.find(request) != kNone;
  }
  // The waiter of a request id that waits.
  [[nodiscard]] std::optional<WaiterId> waiting_as(std::string_view request) const;
  [[nodiscard]] Totals totals() const;
  // What leases and waiters take of what they may.
  [[nodiscard]] const Accounts& accounts() const { return accounts_; }
  [[nodiscard]] std::size_t history_bytes() const { return history_.bytes(); }
  // Nodes that inputs and reads have visited beyond a fixed few for each: what they cost, without a
  // clock.
  [[nodiscard]] std::uint64_t work() const {
    return work_.nodes() + holders_.work.nodes() + waiters_.work.nodes();
  }
  // Puts into `out`, which is cleared, every record that the store must have when all that was
  // taken so far is durable. Not while the open batch holds changes.
  void write_state(Batch& out) const;
  // After a restore: until grants begin. 0 otherwise.
  [[nodiscard]] Millis restoring_for(Now now) const { return restore_wait_.left(now.tick); }

 private:
  // testlib/invariants.h: a snapshot for the checker that compares before and after.
  friend class Probe;

  // What a grant is made from, whether it comes at once or after a wait. Views are valid for the
  // call.
  struct GrantInput {
    WaiterId waiter;
    LeaseId candidate;
    LeaseTerms terms;
    Millis waited{0};
    std::string_view owner;
    std::string_view meta;  // As in the record.
    Index request = kNone;
    AccountId account = 0;
    std::uint32_t bytes = 0;
  };
  // A grant whose TTL has not begun, because `batch` is not durable.
  struct PendingGrant {
    BatchId batch;
    Index lease;
    Token token;  // The lease at that index may be another by then.
  };

  // --- core.cc: acquire, and acquire again -------------------------------------------------------
  // Whether the locks could be granted at once. No barging: a request behind an earlier waiter
  // waits as well, readers included.
  [[nodiscard]] bool free_for(const AcquireSpec& spec) const;
  // Answers a request id that is known (G5): its lease, its wait, or how its lease ended.
  void retry(Index request, const Acquire& input, Now now);
  // The request id still waits: the newest connection owns the wait, which keeps its place.
  void rejoin(Index waiter, const Acquire& input, Now now);
  // Joins the queue of each lock. `meta` as in the record.
  void enqueue(const Acquire& input, std::string meta, Now now);
  // What its lease or its wait counts in Accounts.
  [[nodiscard]] static std::uint32_t bytes_of(const LockNames& locks, std::string_view owner,
                                              std::string_view meta, std::string_view request);
  [[nodiscard]] std::uint32_t bytes_of(const Lease& lease) const;
  // What a retry must have in common with its request: locks (as a set), mode, limit and TTL.
  [[nodiscard]] std::uint64_t fingerprint(const LockNames& locks, const LeaseTerms& terms) const;

  // --- core_grants.cc: granting, and serving the queues ------------------------------------------
  // Grants the locks, which must all admit the terms, and answers input.waiter.
  void grant(const GrantInput& input, std::span<const Index> locks, Now now);
  // Grants a waiter that has its turn, which ends its wait.
  void grant_waiter(Index waiter, Now now);
  // First in the queue of every lock it named, and all of them would admit it. Strict, so that
  // nobody starves and no cycle of waiters exists: the earliest of all waiters is first in every
  // queue it stands in.
  [[nodiscard]] bool has_turn(const Waiter& waiter) const;
  // Grants from the head of the lock's queue as long as the head has its turn; forgets a lock that
  // is neither held nor waited for.
  void serve(Index lock, Now now);
  // One step of serve(). Locks that a waiter left without a grant are added to `unblocked`.
  void serve_one(Index lock, std::vector<Index>& unblocked, Now now);
  // Goes on with the queues that serve() has left because the batch was full.
  void serve_left(Now now);
  // Answers the waiter with `why`, and lets those behind it have their turn.
  void end_wait(Index waiter, NotObtained::Why why, Now now);
  // The same without an answer.
  void drop_waiter(Index waiter, Now now);
  // Out of every queue, as if it had never asked. Serves nobody: that is left to the caller, for
  // the locks added to `left`.
  void withdraw(Index waiter, std::vector<Index>& left);
  // Grants may begin: serves every lock that is waited for.
  void end_restore_wait(Now now);

  // --- core_grants.cc: the end of a lease --------------------------------------------------------
  // Ends a live lease. How it ended is known from here on; its locks pass on now, or after its
  // DELAY.
  void end_lease(Index lease, Ending ending, Now now, const EndOptions& options = {});
  // Hands on the locks of a lease that is over, and forgets it.
  void hand_on(Index lease, Now now);
  // Forgets the ask of the lock if none of those that were asked is left.
  void forget_answered_ask(Index lock);
  void add_to_history(const Lease& lease, Ending ending, Now now);
  // The TTL starts in full at `now`; MAXHOLD counts from here.
  void start_ttl(Lease& lease, Tick now);
  void arm(Index lease) { lease_timers_.arm(lease, due_ms(holders_.leases.items[lease].ends)); }
  // Puts the lease as it is now into the open batch.
  void put_lease(const Lease& lease);
  // One event for each lock of the lease; with `ending`, it is over.
  void add_events(EventKind kind, const Lease& lease, Now now, std::optional<Ending> ending = {},
                  std::string_view reason = {});

  // --- core_loading.cc ---------------------------------------------------------------------------
  Result<void> load_lease(const LeaseRecord& record);
  void unload_lease(Index lease);
  [[nodiscard]] Index find_loaded(Token token) const;
  // Makes a loaded lease a holder, in order of token, and starts its time.
  Result<void> place_loaded(Index lease, Now now);

  // --- core_reads.cc -----------------------------------------------------------------------------
  // The lease as the store keeps it.
  [[nodiscard]] LeaseRecord record_of(const Lease& lease) const;
  [[nodiscard]] LockView view(Index lock, HoldersPage page, Now now) const;
  [[nodiscard]] HolderView holder_view(const Lease& lease, Now now) const;
  // The lock of the lease with the newest ask that concerns it; kNone: none has one.
  [[nodiscard]] Index asked_lock(const Lease& lease) const;

  const Options options_;
  Changes changes_;
  Holders holders_;
  Waiters waiters_;
  Requests requests_;
  History history_;
  TimerWheel<Lease> lease_timers_;  // The end of each lease, or of the DELAY it is closed for.
  RestoreWait restore_wait_;
  std::deque<PendingGrant> pending_grants_;  // In order of batch.
  Accounts accounts_;
  Asks asks_;
  std::vector<Index> left_;  // Locks whose first waiters have their turn in a later batch.
  ClosedLocks closed_;       // Kept closed by leases that are over.
  HashIndex loaded_;         // Between load() and loaded(): the leases, by token.
  WorkCount work_;
};

}  // namespace pawl::core
