// The core's state and the steps its inputs are made of. Private to src/core: core.cc takes the
// inputs, grants.cc hands locks out and takes them back, loading.cc rebuilds it from records,
// reads.cc shows it.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/mutants.h"
#include "core/core.h"
#include "core/history.h"
#include "core/lease_table.h"
#include "core/lock_table.h"
#include "core/records.h"
#include "core/requests.h"
#include "core/timer_wheel.h"
#include "core/waiters.h"

namespace pawl::core {

// What a grant is made from, whether it comes at once or after a wait.
struct GrantInput {
  WaiterId waiter;
  LeaseId candidate;
  LeaseTerms terms;
  Millis waited{0};
  std::string_view owner;
  std::string_view meta;  // as in the record
  Index request = kNone;
};

// What an operator may say about an end.
struct Parting {
  bool skip_delay = false;
  std::string_view reason = {};
};

struct Core::State {
  explicit State(const Options& options);

  // --- core.cc: replies and batches --------------------------------------------------------------
  void reply(WaiterId waiter, Outcome outcome, BatchId after) {
    output.replies.push_back({waiter, outcome, after});
  }
  [[nodiscard]] BatchId open_batch() const { return BatchId{taken.value + 1}; }
  [[nodiscard]] BatchId last_batch() const;
  void put_last_token();
  [[nodiscard]] bool tokens_left() const { return last_token.value < limits::kTokenMax; }

  // --- acquire.cc: asking, waiting, asking again -------------------------------------------------
  void acquire(const Acquire& input, Now now);
  void retry(Index request, const Acquire& input, Now now);
  void rejoin(Index waiter, const Acquire& input, Now now);
  void enqueue(const Acquire& input, std::string meta, Now now);
  void drop_waiter(Index waiter, Now now);
  void take_out(Index waiter, std::vector<Index>& left);
  void end_wait(Index waiter, NotObtained::Why why, Now now);
  [[nodiscard]] std::uint64_t fingerprint(const LockNames& names, const LeaseTerms& terms) const;
  [[nodiscard]] std::uint64_t position(Index waiter) const;
  [[nodiscard]] bool free_for(const AcquireSpec& spec) const;

  // --- restoring.cc: granting nothing for a while after a restore --------------------------------
  [[nodiscard]] bool restoring() const { return grants_from != kNever; }
  [[nodiscard]] Millis restoring_for(Now now) const;
  void end_restoring(Now now);

  // --- grants.cc: handing out and taking back ----------------------------------------------------
  [[nodiscard]] bool admits(const Lock& lock, Mode mode, std::uint32_t limit) const;
  [[nodiscard]] bool has_its_turn(const Waiter& waiter) const;
  void grant(const GrantInput& input, std::span<const Index> locks, Now now);
  void grant_waiter(Index waiter, Now now);
  // Grants from the head of the queue as long as the head may have it; forgets a lock that nobody
  // needs.
  void serve(Index lock, Now now);
  void serve_one(Index lock, std::vector<Index>& unblocked, Now now);
  void end_lease(Index lease, Ending ending, Now now, const Parting& parting = {});
  void give_back(Index lease, Now now);
  void remember(Index lease, Ending ending, Now now);
  void add_holder(Index lock, Index lease);
  void remove_holder(Index lock, Index lease);
  [[nodiscard]] std::uint16_t free_slot(const Lock& lock) const;
  [[nodiscard]] bool slot_taken(const Lock& lock, std::uint16_t slot) const;
  [[nodiscard]] Token floor_of(const Lock& lock, Token otherwise) const;
  [[nodiscard]] std::span<const Index> locks_of(const Lease& lease) const;
  [[nodiscard]] Granted granted_view(const Lease& lease) const;
  void arm(Index lease);
  void start_ttl(Lease& lease, Tick now);
  void put_record(const Lease& lease);
  void emit(EventKind kind, const Lease& lease, std::string_view lock, Now now,
            std::optional<Ending> ending = {}, std::string_view reason = {});
  void emit_for_locks(EventKind kind, const Lease& lease, Now now,
                      std::optional<Ending> ending = {}, std::string_view reason = {});

  // --- loading.cc --------------------------------------------------------------------------------
  Result<void> load_lease(const LeaseRecord& record);
  Result<void> place_loaded(Index lease, Now now);

  // --- reads.cc ----------------------------------------------------------------------------------
  [[nodiscard]] LockView view(Index lock, std::size_t holders_max, Now now) const;
  [[nodiscard]] HolderView holder_view(const Lease& lease, Now now) const;

  Options options;
  LockTable locks;
  LeaseTable leases;
  WaiterTable waiters;
  Requests requests;
  History history;
  TimerWheel<Lease> lease_timers;
  TimerWheel<Waiter> waiter_timers;

  Millis restored_wait{0};         // Of a store that was restored,
  Tick grants_from = kNever;       // and when it has passed; kNever: it has.
  std::uint64_t closed_locks = 0;  // Kept closed by leases that are over.
  Token last_token;
  Token recorded_token;  // The last one put into a batch.
  Output output;
  Batch batch;      // Changes since the last take_batch().
  BatchId taken;    // The newest batch taken.
  BatchId durable;  // The newest batch known to be durable.
  struct Grant {
    BatchId batch;
    Index lease;
    Token token;
  };
  std::deque<Grant> not_durable;  // Grants whose TTL has not begun.
  std::vector<Index> loaded;      // Leases between load() and loaded().
  std::string scratch;            // For encoding records.
};

// Wheels count whole milliseconds; a deadline is rounded up, so that nothing is ever early.
inline std::uint64_t due_ms(Tick tick) {
  if (PAWL_MUTANT(expiry_a_moment_early)) tick -= Millis(1);
  return static_cast<std::uint64_t>(std::chrono::ceil<Millis>(tick.time_since_epoch()).count());
}
inline std::uint64_t passed_ms(Tick tick) {
  return static_cast<std::uint64_t>(std::chrono::floor<Millis>(tick.time_since_epoch()).count());
}

}  // namespace pawl::core
