// Drives machine and keeper for programs with many threads. One thread receives and keeps the time
// (the I/O thread), one runs the users' callbacks, one requests stop for lost leases, and one exists
// while connecting.
//
// Callers send their commands themselves: waking another thread for it would cost more than the
// send. Only one thread sends at a time. A caller that finds another one sending, or the I/O thread
// awake, leaves its command to that thread; so the more callers, the fewer sends per call.
//
// One lock guards machine and keeper. It is held for work in memory only, never while waiting and
// never while a callback runs. The clock is read under it: otherwise one thread could report a
// lease as uncertain, and another then renew it with an answer that it read before.
//
// After fork() the child may call nothing but forked(): the threads are gone, the lock may be held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "base/unique_fd.h"
#include "client/address.h"
#include "client/callback_thread.h"
#include "client/connector.h"
#include "client/fork_guard.h"
#include "client/holders.h"
#include "client/keeper.h"
#include "client/leader_watch.h"
#include "client/listener.h"
#include "client/loss_notifier.h"
#include "client/machine.h"
#include "client/pending_result.h"
#include "client/socket.h"
#include "client/test_time.h"

namespace pawl::client {

struct DriverOptions {
  MachineOptions machine = {};
  Keeper::AnswerTimeout answer_timeout = Keeper::AnswerTimeout::kFromShortestLease;
  Millis connect_timeout{1'000};  // per address
  // They run on the callback thread.
  std::function<void(std::string_view)> log = {};
  std::function<void(ConnectionState, const std::string&)> on_connection = {};
  std::function<void(std::string_view, double)> metric = {};
  std::shared_ptr<TestTime> test_time = {};  // Empty: the real clock.
};

// A granted lease that the driver's keeper renews.
struct KeptLease {
  LeaseNumber number;
  GrantedLease granted;
};

class Driver final : public TestClient, public std::enable_shared_from_this<Driver> {
 public:
  // Run on the I/O thread, or before the call returns, without the lock. Must not block.
  using OnAcquired = std::function<void(Result<KeptLease>)>;
  using OnReleased = std::function<void(Result<ReleaseResult>)>;
  using OnReply = std::function<void(Result<wire::Value>)>;

  // An error: the process has no file descriptor or thread left.
  static Result<std::shared_ptr<Driver>> start(std::vector<Address> addresses,
                                               DriverOptions options);

  [[nodiscard]] bool forked() const { return fork_guard_.forked(); }
  // CLOCK_BOOTTIME plus clock_offset(), by which a test has moved it.
  [[nodiscard]] Instant now() const;
  [[nodiscard]] Nanos clock_offset() const;
  // A function that runs on the I/O thread must not wait for an answer.
  [[nodiscard]] bool on_io_thread() const {
    return io_thread_.load() == std::this_thread::get_id();
  }

  // For an acquire that would wait for a lease which the same thread has acquired.
  enum class OnSelfWait : std::uint8_t { kRefuse, kWait };
  // `done` is called exactly once. Returns the argument of cancel().
  CallId acquire(AcquireCall call, KeepOptions options, std::shared_ptr<Holder> holder,
                 OnSelfWait on_self_wait, OnAcquired done);
  void cancel(CallId call);
  [[nodiscard]] LeaseStatus status(LeaseNumber lease);
  void progress(LeaseNumber lease);
  // Calls back on the callback thread with each ask from now on, and with the newest that came
  // before. Replaces the callback that the holder had.
  void on_release_wanted(LeaseNumber lease, std::function<void(const ReleaseWanted&)> callback);
  // `done` is called exactly once. kForgotten: forget() need not be called.
  enum class AfterRelease : std::uint8_t { kForgotten, kRemembered };
  AfterRelease release(LeaseNumber lease, Nanos wait_at_most, OnReleased done);
  // How long a destructor may wait for its release, at most `wait_at_most`; less, down to nothing,
  // when others have waited since pawld answered last.
  [[nodiscard]] Millis destructor_wait(Millis wait_at_most);
  void forget(LeaseNumber lease);
  // `done` is called exactly once.
  void command(CommandCall call, OnReply done);
  // Calls back on the callback thread with the current leader and each change. An error is the
  // last call.
  WatchNumber watch(std::string name, LeaderWatches::Callback callback);
  void unwatch(WatchNumber watch);
  // Where callers wait for their results.
  [[nodiscard]] WakeupGroup& wakeups() { return wakeups_; }
  void post(std::function<void()> callback) { callbacks_.post(std::move(callback)); }

  // For pawl::testing.
  IdleState wait_until_idle(std::chrono::milliseconds limit) override;

  // Cancels all waits and releases all leases, for `wait_at_most`; then all threads end. No hook is
  // called after this.
  void shut_down(Millis wait_at_most);

 private:
  struct PendingAcquire {
    KeepOptions options;
    std::shared_ptr<Holder> holder;
    OnAcquired done;
  };

  Driver(std::vector<Address> addresses, DriverOptions options);
  [[nodiscard]] Result<void> start_threads();
  void run();
  void run_once(std::unique_lock<std::mutex>& lock);
  void run_completions(std::unique_lock<std::mutex>& lock);
  void flush(std::unique_lock<std::mutex>& lock);
  void flush_and_wake_io(std::unique_lock<std::mutex>& lock);
  void take_completions(Instant now);
  void take_acquired(PendingAcquire pending, Result<GrantedLease> held, Instant now);
  [[nodiscard]] std::optional<Token> first_live(const std::vector<LeaseNumber>& leases,
                                                Instant now);
  void post_lease_changes();
  void post_asks();
  void post_leader_changes(Instant now);
  void report_metrics();
  void maintain_connection(Instant now);
  void start_replacement();
  void use_connection(std::unique_ptr<Socket> socket, Instant now);
  void hang_up(const std::string& why, Instant now);
  [[nodiscard]] Instant next_due(Instant now) const;
  void poll(int fd, bool wants_send, Instant until);
  void set_timer(Instant until);
  void fail_pending();
  [[nodiscard]] Instant note_idle(Instant next, Instant now);
  void report_connection();
  void log(std::string line);
  void count(std::string_view name, double value);
  void post_hook(std::function<void()> hook);

  const ForkGuard fork_guard_;
  const DriverOptions options_;
  const std::shared_ptr<Listener<const std::function<void()>&>> hooks_;  // Runs options_.log etc.
  const std::shared_ptr<UniqueFd> wake_fd_;  // Shared with the connector's thread.
  const UniqueFd timer_;                     // CLOCK_BOOTTIME
  CallbackThread callbacks_;
  LossNotifier losses_;
  WakeupGroup wakeups_;
  std::atomic<std::thread::id> io_thread_{};

  std::mutex mutex_;
  std::condition_variable ended_;
  SystemRandom random_;
  Machine machine_;
  Keeper keeper_;
  LeaderWatches watches_;
  std::unordered_map<CallId, PendingAcquire> acquires_;
  std::unordered_map<CallId, OnReleased> releases_;
  std::unordered_map<CallId, OnReply> commands_;
  Holders holders_;
  std::vector<std::function<void()>> completions_;  // Run by the I/O thread without the lock.
  Keeper::Counters reported_;                       // As last reported to options_.metric.
  Instant destructors_wait_until_ = kNever;         // kNever: none waits; see destructor_wait()
  Instant stop_at_ = kNever;                        // Set by shut_down().
  bool takes_no_calls_ = false;                     // The last completions are being run,
  bool has_ended_ = false;                          // and have been run.
  // For wait_until_idle().
  std::condition_variable became_idle_;
  int idle_waiters_ = 0;
  bool is_idle_ = false;
  IdleState idle_;
  // Sending.
  std::shared_ptr<Socket> socket_;   // Also owned by the thread that sends.
  std::string unsent_;               // The socket was full; the I/O thread sends the rest.
  bool sending_ = false;             // A thread is sending.
  bool asleep_ = false;              // The I/O thread waits, or is about to:
  Instant sleeps_until_{};           // until then,
  bool waits_for_writable_ = false;  // or until the socket is writable again.

  // Used by the I/O thread only.
  static constexpr Instant kNotSet = Instant::min();
  Instant timer_set_to_ = kNotSet;
  Connector connector_;
  Address connecting_to_;
  std::optional<ConnectionState> connection_;  // as last reported; nullopt: nothing was
  bool suspended_with_leases_ = false;
  std::uint64_t lost_before_ = 0;  // leases, when it was suspended
  Instant replace_at_{};           // the earliest time for the next replacement
  std::size_t replacements_ = 0;   // attempts at one
};

}  // namespace pawl::client
