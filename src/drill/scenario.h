// One run of a drill: workers, pawld, the network between them, and the record of what happens.
//
//   Scenario scenario("pause", config);
//   WorkerProcess& a = scenario.start_worker("A");
//   const std::uint64_t token = scenario.acquire(a);
//   scenario.freeze(a);
//   …
//   DrillRecord record = scenario.finish();
//
// A drill is written as a list of steps, without error handling after each: a step that cannot be
// done throws DrillAborted, and every step throws DrillInterrupted once config.stop_fd is readable.
// Used by one thread, which also serves all workers and proxies whenever a step waits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "client/address.h"
#include "drill/config.h"
#include "drill/lock_observer.h"
#include "drill/pollable.h"
#include "drill/record.h"
#include "drill/tcp_proxy.h"
#include "drill/throwaway_pawld.h"
#include "drill/worker_process.h"

namespace pawl::drill {

// The drill cannot be carried out, which says nothing about the guard. kUnavailable, kBusy (someone
// else holds the lock), …
struct DrillAborted {
  Error error;
};
// A stop was requested (Ctrl-C).
struct DrillInterrupted {};

// The value of a result; throws DrillAborted where there is none.
template <class T>
T need(Result<T> result) {
  if (!result) throw DrillAborted{result.error()};
  return *std::move(result);
}
inline void need(const Result<void>& result) {
  if (!result) throw DrillAborted{result.error()};
}

// How a worker reaches pawld. Through a proxy it can be cut off.
enum class Network : std::uint8_t { kDirect, kProxy };

class Scenario {
 public:
  // `drill`: its name, for the record.
  Scenario(std::string_view drill, DrillConfig config);
  // Ends everything that was started.
  ~Scenario();
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  [[nodiscard]] const DrillConfig& config() const { return config_; }
  [[nodiscard]] const DrillRecord& record() const { return record_; }
  // Time since the scenario began.
  [[nodiscard]] Moment now() const;

  // Starts a pawld of the drill's own and uses it instead of config.pawld. Before the first worker.
  void use_throwaway_pawld();

  // --- workers and the lock ----------------------------------------------------------------------

  // Starts a worker and returns once it is ready. The reference stays valid, also over restart().
  WorkerProcess& start_worker(const std::string& name, Network network = Network::kDirect);
  // Acquires the lock and returns its token.
  std::uint64_t acquire(WorkerProcess& worker);
  // The same in two steps: queue for the lock, then wait for the grant.
  void request_lock(WorkerProcess& worker);
  std::uint64_t await_grant(WorkerProcess& worker);
  // Of several workers with a pending request: the one that is granted the lock first.
  WorkerProcess& await_first_grant(const std::vector<WorkerProcess*>& workers);
  // The last token that the worker was granted; 0: none yet.
  [[nodiscard]] std::uint64_t token(const WorkerProcess& worker) const;
  // Waits until the worker knows that it does not hold the lock any more.
  void await_loss_noticed(WorkerProcess& worker);
  // Does nothing when the worker knows that it does not hold the lock.
  void release(WorkerProcess& worker);
  // Advances the fence to the worker's token, as every new holder should before it reads. Does
  // nothing without a guard, and the second time for one token.
  void advance(WorkerProcess& worker);

  // --- writes ------------------------------------------------------------------------------------

  // Sends a write under `token`, and returns its index in the record; await_result() waits for its
  // result. A frozen worker sends it once it is resumed. An empty `value` stands for one that no
  // other write of this scenario has.
  std::size_t send_write(WorkerProcess& worker, std::uint64_t token,
                         LeaseCheck check = LeaseCheck::kSkip, std::string value = {});
  const Write& await_result(std::size_t write);
  const Write& write(WorkerProcess& worker, std::uint64_t token,
                     LeaseCheck check = LeaseCheck::kSkip) {
    return await_result(send_write(worker, token, check));
  }

  // Sends a write under `token`, which is stale by now, in every way in which a program may give
  // its token, and rolls each back (ways.h). Does nothing without a guard, and the second time.
  void try_ways(WorkerProcess& worker, std::uint64_t token);

  // --- faults ------------------------------------------------------------------------------------

  void freeze(WorkerProcess& worker);
  void resume(WorkerProcess& worker);
  void kill(WorkerProcess& worker);
  // Starts it again after kill(), as a supervisor does; token() is still that of before.
  void restart(WorkerProcess& worker);
  // Records that a write of this worker is delayed on its way, and that it arrives. The write
  // itself is sent by the caller when it arrives.
  void delay_write(WorkerProcess& worker);
  void deliver_delayed_write(WorkerProcess& worker);
  // Of a worker that was started with Network::kProxy.
  void cut_network(WorkerProcess& worker, Cut cut);
  void restore_network(WorkerProcess& worker);

  // Of the throw-away pawld.
  void kill_pawld();
  // `clock_offset`: how far its clocks are from ours.
  void start_pawld(std::chrono::seconds clock_offset = {});
  void back_up_pawld();
  // From the last backup, while it is killed.
  void restore_pawld();

  // --- time and the end --------------------------------------------------------------------------

  // Serves everything for this long.
  void run_for(std::chrono::milliseconds time);
  // A sixth of the TTL. Without it, all steps would happen within milliseconds and the timeline
  // would show nothing.
  void pause_briefly() { run_for(config_.ttl / 6); }
  // Corrects the outcome of writes by what is really in the resource: `values` are the values
  // found.
  void reconcile(const std::vector<std::string>& values);
  // What the guard reports about itself, for the verdict.
  void add_problems(const Result<std::vector<GuardProblem>>& problems);
  // Ends the workers and the faults that are still open, and adds the verdict.
  DrillRecord finish();

 private:
  // A worker and what the scenario knows about it.
  struct WorkerState {
    std::unique_ptr<TcpProxy> proxy;  // outlives the process
    std::unique_ptr<WorkerProcess> process;
    bool ready = false;
    bool waiting = false;        // for the lock
    bool believes_held = false;  // It has a grant, and has not learned of its end.
    std::uint64_t token = 0;
    std::uint64_t token_before = 0;  // the greatest token known when it requested the lock
    std::uint64_t advanced_to = 0;
    // Why the last request will not be fulfilled: not granted, failed, process ended.
    std::optional<Error> error = {};
  };

  [[nodiscard]] WorkerState& state_of(const WorkerProcess& worker);
  [[nodiscard]] const WorkerState& state_of(const WorkerProcess& worker) const;
  [[nodiscard]] Result<std::unique_ptr<WorkerProcess>> start_process(const WorkerState& state,
                                                                     const std::string& name) const;
  void start_observer();
  void await_ready(WorkerState& state, const std::string& name);
  // The longest time for which an expired lease and the holders before us can delay a grant.
  [[nodiscard]] std::chrono::milliseconds handover_limit() const;
  // Advances the fence at once when the resource is the user's own: its writes may be judged and
  // rolled back, and then they do not raise the fence.
  void advance_own_resource(WorkerProcess& worker);

  void log(std::string_view source, std::string text);
  // Serves everything until the condition holds; DrillAborted after `limit`.
  void wait_until(std::string_view what, std::chrono::milliseconds limit,
                  const std::function<bool()>& holds);
  // One poll() over all descriptors, until `limit` at the latest.
  void poll_once(client::Instant limit);
  void on_event(WorkerState& state, const WorkerEvent& event);
  void on_event(const wire::EventPush& event);
  void on_granted(WorkerState& state, const WorkerEvent& event);
  void on_write_result(WorkerState& state, const WorkerEvent& event);
  [[nodiscard]] std::string describe(const Write& write) const;
  void await_endings();
  void end_belief(WorkerState& state, client::Instant at);
  // The ownership with this token, added if it is new.
  Ownership& ownership(std::uint64_t token, const std::string& worker, Moment from);
  Fault& add_fault(FaultKind kind, const std::string& target, std::string note = {});
  void end_fault(FaultKind kind, const std::string& target);
  [[nodiscard]] Moment moment(client::Instant at) const;

  DrillConfig config_;
  const client::Instant began_;
  DrillRecord record_;
  std::uint64_t last_reported_token_ = 0;  // by pawld, of any holder
  std::unique_ptr<ThrowawayPawld> throwaway_;
  std::chrono::seconds clock_offset_{};  // of the throw-away pawld
  std::unique_ptr<LockObserver> observer_;
  std::vector<std::unique_ptr<WorkerState>> workers_;
};

}  // namespace pawl::drill
