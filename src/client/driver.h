// Drives machine and keeper for programs with many threads: one thread reads, connects and keeps
// the time, another runs the users' callbacks, a third exists while a connection is being made.
//
// Callers send what they ask for themselves: waking another thread to do it would cost more than
// the sending. One at a time: who finds another at it, or the I/O thread awake, leaves its command
// to that one, so the more callers there are, the fewer sends each of them costs.
//
// One lock guards machine and keeper; it is held for work in memory only, never while waiting and
// never while a callback runs. The clock is read under it, so that a lease judged uncertain by one
// thread cannot be renewed by an answer another thread read before.
//
// After fork() nothing here may be touched in the child but forked(): the threads are gone, the
// lock may be held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "base/unique_fd.h"
#include "client/address.h"
#include "client/answer.h"
#include "client/callback_thread.h"
#include "client/connector.h"
#include "client/fork_guard.h"
#include "client/holders.h"
#include "client/keeper.h"
#include "client/leader_watches.h"
#include "client/machine.h"
#include "client/socket.h"
#include "client/test_time.h"

namespace pawl::client {

struct DriverOptions {
  MachineOptions machine = {};
  Keeper::Patience patience = Keeper::Patience::kByShortestLease;
  Millis connect_timeout{1'000};  // per address
  // Both run on the callback thread.
  std::function<void(std::string_view)> log = {};
  std::function<void(std::string_view, double)> metric = {};
  std::shared_ptr<TestTime> test_time = {};  // Empty: the clock as it is.
};

struct Grant {
  LeaseNumber number;
  Held held;
};

class Driver final : public TestSubject {
 public:
  // Called on the I/O thread (or before the call returns), without the lock; must not wait.
  using Acquired = std::function<void(Result<Grant>)>;
  using Released = std::function<void(Result<Release>)>;
  using Answered = std::function<void(Result<wire::Value>)>;

  static std::shared_ptr<Driver> start(std::vector<Address> addresses, DriverOptions options);

  [[nodiscard]] bool forked() const { return fork_guard_.forked(); }
  // CLOCK_BOOTTIME, and by how much a test has moved it.
  [[nodiscard]] Instant now() const;
  [[nodiscard]] Nanos moved() const;
  // Who calls from the I/O thread must not wait for an answer.
  [[nodiscard]] bool on_io_thread() const {
    return io_thread_.load() == std::this_thread::get_id();
  }

  // What to do when the thread that asks took a lease itself which it would have to wait for.
  enum class OnSelfWait : std::uint8_t { kRefuse, kWait };
  // Exactly one call of `done` follows. Returns what cancel() takes.
  CallId acquire(AcquireCall call, KeepOptions keep, std::shared_ptr<Holder> holder,
                 OnSelfWait on_self_wait, Acquired done);
  void cancel(CallId call);
  [[nodiscard]] Standing look(LeaseNumber lease);
  void progress(LeaseNumber lease);
  // Exactly one call of `done` follows. kForgotten: forget() need not be called.
  enum class Kept : std::uint8_t { kForgotten, kRemembered };
  Kept release(LeaseNumber lease, Nanos wait_at_most, Released done);
  void forget(LeaseNumber lease);
  // Exactly one call of `done` follows.
  void command(CommandCall call, Answered done);
  // Tells who leads, and each change, on the callback thread; an error is the last.
  WatchNumber watch(std::string name, LeaderWatches::Told told);
  void unwatch(WatchNumber watch);
  // Where callers sleep until they are answered.
  [[nodiscard]] Waking& waking() { return waking_; }
  void post(std::function<void()> callback) { callbacks_.post(std::move(callback)); }

  // For tests whose time this client lives by.
  Rest rest(std::chrono::milliseconds limit) override;

  // Ends everything: waits are cancelled, leases given back, for so long at most; then all threads
  // end.
  void shut_down(Millis wait_at_most);

 private:
  struct Asked {
    KeepOptions keep;
    std::shared_ptr<Holder> holder;
    Acquired done;
  };

  Driver(std::vector<Address> addresses, DriverOptions options);
  void run();
  void turn(std::unique_lock<std::mutex>& lock);
  void answer(std::unique_lock<std::mutex>& lock);
  void flush(std::unique_lock<std::mutex>& lock);
  void went_on(std::unique_lock<std::mutex>& lock);
  void take_completions(Instant now);
  void take_acquired(Asked asked, Result<Held> held, Instant now);
  [[nodiscard]] std::optional<Token> first_live(const std::vector<LeaseNumber>& leases,
                                                Instant now);
  void tell_changes();
  void tell_leaders(Instant now);
  void tell_metrics();
  void tend_connection(Instant now);
  void hang_up(const std::string& why, Instant now);
  [[nodiscard]] Instant next_due(Instant now) const;
  void poll(int fd, bool wants_send, Instant until);
  void end_all();
  [[nodiscard]] Instant come_to_rest(Instant next, Instant now);
  void log(std::string line);
  void count(std::string_view name, double value);

  const ForkGuard fork_guard_;
  const std::vector<Address> addresses_;
  const DriverOptions options_;
  const std::shared_ptr<UniqueFd> wake_fd_;  // Shared with the connector's thread.
  CallbackThread callbacks_;
  Waking waking_;
  std::atomic<std::thread::id> io_thread_{};

  std::mutex mutex_;
  std::condition_variable ended_;
  SystemRandom random_;
  Machine machine_;
  Keeper keeper_;
  LeaderWatches watches_;
  std::unordered_map<CallId, Asked> asked_;
  std::unordered_map<CallId, Released> releasing_;
  std::unordered_map<CallId, Answered> asking_;
  Holders holders_;
  std::vector<std::function<void()>> to_call_;  // On the I/O thread, once the lock is free.
  Keeper::Counters told_;                       // As last told to options_.metric.
  Instant stop_at_ = kNever;                    // Set by shut_down().
  bool has_ended_ = false;
  // For rest().
  std::condition_variable rested_;
  int rest_wanted_ = 0;
  bool resting_ = false;
  Rest rest_;                       // the last one
  std::shared_ptr<Socket> socket_;  // Also owned by who is sending.
  std::string unsent_;              // The socket was full; the I/O thread sees to it.
  bool sending_ = false;            // One at a time.
  bool asleep_ = false;             // The I/O thread waits, or is about to:
  Instant sleeps_until_{};          // until then,
  bool awaits_room_ = false;        // or until there is room for what is unsent.

  // The I/O thread's own.
  Connector connector_;
  std::size_t next_address_ = 0, connecting_to_ = 0;
};

}  // namespace pawl::client
