// The core: who holds which lock, who waits, and which token comes next. Pure rules; no I/O, no
// thread, no clock.
//
//   core.load(key, value)…; core.loaded(high_water, now);
//   each turn:  core.apply(Acquire{…}, now)…;  core.tick(now);
//               if (BatchId id = core.take_batch(batch); id.value != 0) store.submit(batch, id, sink);
//               on sink.durable(id):  core.durable(id, later);     // a clock read after the sync
//               send core.output().replies whose `after` is durable;  core.output().clear();
//
// The same inputs give the same outputs, so the simulator, the property tests and the server run
// this very code. One thread owns it. Changes are visible to reads at once; it is the caller who
// holds answers back until the batch they rest on (Reply::after, last_batch()) is durable.
//
// Cost: every input is O(locks named + holders of a LIMIT or SHARED lock + what it hands on),
// independent of how many locks are held; expiry is O(1) per lease and TTL (timer_wheel.h). Memory
// per held lock: see lease_table.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/batch.h"
#include "base/limits.h"
#include "base/types.h"
#include "core/inputs.h"
#include "core/outputs.h"
#include "core/views.h"
#include "pawl/result.h"

namespace pawl::core {

struct Options {
  std::uint64_t hash_seed =
      0;  // Random in production, so that nobody can choose names that collide.
  std::size_t waiters_max = limits::kWaitersMax;
  std::size_t history_epochs = limits::kHistoryEpochs;
  std::size_t requests_remembered = limits::kRequestsRemembered;
  Millis request_memory = limits::kRequestMemory;
};

class Core {
 public:
  explicit Core(Options options = {});
  ~Core();
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;

  // --- Starting ----------------------------------------------------------------------------------
  void expect(std::uint64_t leases);  // Reserve room, when the store knows how many will come.
  Result<void> load(std::string_view key, std::string_view value);
  // Everything is loaded. Tokens continue above `high_water`; every lease starts with its full TTL
  // at `now` (G4).
  Result<void> loaded(Token high_water, Now now);

  // --- Inputs ------------------------------------------------------------------------------------
  void apply(const Acquire& input, Now now);
  void apply(const Renew& input, Now now);
  void apply(const Release& input, Now now);
  void apply(const Cancel& input, Now now);
  void apply(const CancelRequest& input, Now now);
  void apply(const Break& input, Now now);
  void apply(const Raise& input, Now now);
  // Ends what is due. After the turn's other inputs: a renewal read in the turn its lease falls due
  // wins.
  void tick(Now now);
  // The batch is durable: the TTLs of its grants begin at `now`, which was read after the sync.
  void durable(BatchId batch, Now now);

  // --- Outputs -----------------------------------------------------------------------------------
  Output& output();
  // Moves the changes since the last call into `batch` (replacing what it held) and returns their
  // id; 0 when none.
  BatchId take_batch(Batch& batch);
  // What a read must wait for: the id of the newest batch that holds any change, taken or not; 0
  // when all is durable.
  [[nodiscard]] BatchId last_batch() const;
  // When tick() next has something to do, at the latest; kNever when nothing is pending.
  [[nodiscard]] Tick next_deadline() const;

  // --- Reads -------------------------------------------------------------------------------------
  [[nodiscard]] LockView inspect(std::string_view lock, Now now) const;
  // At most `count` locks whose name begins with `prefix` and, when that is given, is `visible`,
  // after bounded work. A lock that stays is seen once.
  [[nodiscard]] LocksPage list(std::string_view prefix, std::uint64_t cursor, std::size_t count,
                               Now now, const NameFilter& visible = {}) const;
  [[nodiscard]] std::vector<EpochView> history(std::string_view lock,
                                               std::size_t count) const;  // newest first
  // How a lease ended. Nothing: it is live, it never was, or its end is forgotten (after a restart,
  // or after limits::kHistoryEpochs more).
  [[nodiscard]] std::optional<Ending> ending_of(LeaseId lease) const;
  // Whether an acquire with this request id would be a retry, which asks for nothing new.
  [[nodiscard]] bool remembers(std::string_view request) const;
  [[nodiscard]] Totals totals() const;
  // After a restore: until grants begin. 0 otherwise.
  [[nodiscard]] Millis restoring_for(Now now) const;

 private:
  friend class Probe;  // invariants.h: a snapshot for the checker that compares before and after.
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pawl::core
