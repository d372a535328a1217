#include "client/driver.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"
#include "client/detached_thread.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

// Between attempts to find a better connection than one that is silent.
constexpr auto kReplacementPause = 50ms;

// For a callback that runs while it is replaced.
constexpr auto kReplacedCallbackWait = 900ms;

constexpr std::string_view kClosed = "the client was closed";

std::string held_here(Token token) {
  return "this client holds it, as token " + std::to_string(token.value);
}

Error waits_for_itself(Token token) {
  return {Code::kInvalid,
          "this thread would wait for itself: it holds the lock already, as token " +
              std::to_string(token.value) + " (see AcquireOptions::wait_for_own)"};
}

void wake(const UniqueFd& fd) {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = write(fd.get(), &one, sizeof(one));
}

// A thread that pthread_cancel() ended while it sends would leave sending_ set for ever, and the
// result of its call without a place.
class CancellationDisabled {
 public:
  CancellationDisabled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationDisabled() { pthread_setcancelstate(before_, nullptr); }
  CancellationDisabled(const CancellationDisabled&) = delete;
  CancellationDisabled& operator=(const CancellationDisabled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// The lock is held for microseconds, so that sleeping costs more than spinning. It is held longer
// only when its holder was preempted, and then sleeping is right. (Not proven: on 2 cores that were
// busy with other work, as in pending_result.h, a plain lock() took 17 µs of client CPU per acquire
// and release and this 20 µs, with overlapping ranges. Measure on an idle machine before relying on
// it, and remove it if it shows nothing there.)
std::unique_lock<std::mutex> lock_spinning_first(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::defer_lock);
  for (int tries = 0; tries < 100; ++tries) {
    if (lock.try_lock()) return lock;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  lock.lock();
  return lock;
}

DriverOptions with_nodes(DriverOptions options, std::vector<Address> addresses) {
  PAWL_ASSERT(!addresses.empty());
  options.machine.nodes = std::move(addresses);
  return options;
}

}  // namespace

Driver::Driver(std::vector<Address> addresses, DriverOptions options)
    : options_(with_nodes(std::move(options), std::move(addresses))),
      hooks_(std::make_shared<Listener<const std::function<void()>&>>(
          [](const std::function<void()>& hook) { hook(); })),
      wake_fd_(std::make_shared<UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      machine_(random_, options_.machine),
      keeper_(machine_, random_, options_.answer_timeout),
      watches_(machine_),
      connector_([fd = wake_fd_] { wake(*fd); }) {}

Result<std::shared_ptr<Driver>> Driver::start(std::vector<Address> addresses,
                                              DriverOptions options) {
  std::shared_ptr<Driver> driver(new Driver(std::move(addresses), std::move(options)));
  if (auto ready = driver->start_threads(); !ready) return ready.error();
  if (driver->options_.test_time) driver->options_.test_time->add_client(driver);
  return driver;
}

Result<void> Driver::start_threads() {
  if (!*wake_fd_ || !timer_) return Error{Code::kUnavailable, "too many open files"};
  auto started = callbacks_.start();
  if (!started) return started;
  started = losses_.start();
  // Detached, and an owner of the driver: a child of fork() can end without a thread to join.
  if (started) started = start_detached([driver = shared_from_this()] { driver->run(); });
  if (started) return started;
  callbacks_.end();
  losses_.end();
  return started;
}

// --- Callers' threads ----------------------------------------------------------------------------

Instant Driver::now() const {
  return boot_now() + clock_offset();
}

Nanos Driver::clock_offset() const {
  return options_.test_time ? options_.test_time->offset() : Nanos(0);
}

CallId Driver::acquire(AcquireCall call, KeepOptions options, std::shared_ptr<Holder> holder,
                       OnSelfWait on_self_wait, OnAcquired done) {
  CallId id{};
  std::optional<Token> own;
  {
    std::unique_lock lock = lock_spinning_first(mutex_);
    const Instant now = this->now();
    const bool may_refuse = call.wait > Millis(0) && on_self_wait == OnSelfWait::kRefuse;
    if (may_refuse) own = first_live(holders_.held_by_same_thread(*holder), now);
    if (stop_at_ == kNever && !own) {
      id = machine_.acquire(std::move(call), now);
      acquires_.emplace(id,
                        PendingAcquire{options, std::move(holder), std::exchange(done, nullptr)});
      flush_and_wake_io(lock);
    }
  }
  if (done) done(own ? waits_for_itself(*own) : Error{Code::kUnavailable, std::string(kClosed)});
  return id;
}

// The first lease that is still being renewed: waiting for one that is not ends soon.
std::optional<Token> Driver::first_live(const std::vector<LeaseNumber>& leases, Instant now) {
  for (const LeaseNumber lease : leases) {
    if (keeper_.status(lease, now).state < LeaseState::kUncertain)
      return holders_.find(lease)->token;
  }
  return std::nullopt;
}

void Driver::cancel(CallId call) {
  std::unique_lock lock = lock_spinning_first(mutex_);
  machine_.cancel(call, this->now());
  flush_and_wake_io(lock);
}

LeaseStatus Driver::status(LeaseNumber lease) {
  const std::unique_lock lock = lock_spinning_first(mutex_);
  return keeper_.status(lease, this->now());
}

void Driver::progress(LeaseNumber lease) {
  std::unique_lock lock = lock_spinning_first(mutex_);
  keeper_.progress(lease, this->now());
  flush_and_wake_io(lock);
}

void Driver::on_release_wanted(LeaseNumber lease,
                               std::function<void(const ReleaseWanted&)> callback) {
  auto listener =
      callback ? std::make_shared<Listener<const ReleaseWanted&>>(std::move(callback)) : nullptr;
  {
    const std::unique_lock lock = lock_spinning_first(mutex_);
    const auto holder = holders_.find(lease);
    if (!holder) return;
    if (listener && holder->unheard) {
      callbacks_.post([listener, wanted = *std::exchange(holder->unheard, std::nullopt)] {
        listener->call(wanted);
      });
    }
    std::swap(holder->on_release_wanted, listener);
  }
  if (listener) listener->close(kReplacedCallbackWait);
}

Driver::AfterRelease Driver::release(LeaseNumber lease, Nanos wait_at_most, OnReleased done) {
  AfterRelease after = AfterRelease::kRemembered;
  {
    std::unique_lock lock = lock_spinning_first(mutex_);
    const Instant now = this->now();
    if (!takes_no_calls_) {
      if (const auto call = keeper_.release(lease, now + wait_at_most, now)) {
        releases_.emplace(*call, std::exchange(done, nullptr));
        if (!keeper_.contains(lease)) {
          holders_.remove(lease);
          after = AfterRelease::kForgotten;
        }
        flush_and_wake_io(lock);
      }
    }
  }
  if (done) done(ReleaseResult{.was_live = false});
  return after;
}

// Destructors run one after the other: while pawld does not answer, all of them together wait once.
Millis Driver::destructor_wait(Millis wait_at_most) {
  const std::unique_lock lock = lock_spinning_first(mutex_);
  const Instant now = this->now();
  if (destructors_wait_until_ == kNever) destructors_wait_until_ = now + wait_at_most;
  return std::clamp(std::chrono::ceil<Millis>(destructors_wait_until_ - now), 0ms, wait_at_most);
}

void Driver::forget(LeaseNumber lease) {
  const std::unique_lock lock = lock_spinning_first(mutex_);
  keeper_.forget(lease);
  holders_.remove(lease);
}

void Driver::command(CommandCall call, OnReply done) {
  {
    std::unique_lock lock = lock_spinning_first(mutex_);
    if (stop_at_ == kNever) {
      commands_.emplace(machine_.command(std::move(call), now()), std::exchange(done, nullptr));
      flush_and_wake_io(lock);
    }
  }
  if (done) done(Error{Code::kUnavailable, std::string(kClosed)});
}

WatchNumber Driver::watch(std::string name, LeaderWatches::Callback callback) {
  const std::lock_guard lock(mutex_);
  if (stop_at_ != kNever) return {};
  wake(*wake_fd_);
  return watches_.add(std::move(name), std::move(callback), now());
}

void Driver::unwatch(WatchNumber watch) {
  const std::lock_guard lock(mutex_);
  watches_.remove(watch, now());
  wake(*wake_fd_);
}

void Driver::shut_down(Millis wait_at_most) {
  const auto limit = std::chrono::steady_clock::now() + wait_at_most;
  {
    std::unique_lock lock(mutex_);
    if (stop_at_ == kNever) {
      const Instant now = this->now();
      stop_at_ = now + wait_at_most;
      for (const auto& [call, pending] : acquires_) machine_.cancel(call, now);
      for (const auto& [call, answered] : commands_) machine_.cancel(call, now);
      watches_.remove_all(now);
      for (const LeaseNumber lease : keeper_.leases()) {
        keeper_.mark_lost(lease, std::string(kClosed));
        keeper_.release(lease, stop_at_, now);
      }
      wake(*wake_fd_);
    }
    ended_.wait_until(lock, limit, [this] { return has_ended_; });
  }
  const auto left = [limit] {
    return std::max(0ms, std::chrono::ceil<Millis>(limit - std::chrono::steady_clock::now()));
  };
  callbacks_.wait_until_ended(left());
  hooks_->close(left());
}

// After every call: sends, and wakes the I/O thread if it would sleep too long otherwise.
void Driver::flush_and_wake_io(std::unique_lock<std::mutex>& lock) {
  if (!asleep_) return;  // It sends and checks all timers before it sleeps.
  const CancellationDisabled until_done;
  flush(lock);
  const bool too_long = std::min(machine_.next_timer(), keeper_.next_timer()) < sleeps_until_;
  const bool full = !unsent_.empty() && !waits_for_writable_;
  if (too_long || full || machine_.has_completions()) wake(*wake_fd_);
}

// Sends the machine's output, without the lock meanwhile. Returns at once when another thread is
// sending: that thread sends ours too.
void Driver::flush(std::unique_lock<std::mutex>& lock) {
  if (sending_) return;
  sending_ = true;
  while (socket_ && unsent_.empty()) {
    std::string bytes = machine_.take_output();
    if (bytes.empty()) break;
    const std::shared_ptr<Socket> socket = socket_;
    lock.unlock();
    const bool alive = socket->send(bytes);
    lock.lock();
    if (socket != socket_) continue;  // It was closed meanwhile; its bytes are lost.
    if (!alive) break;                // receive() reports why, after what can still be read.
    unsent_ = std::move(bytes);       // What did not fit.
  }
  sending_ = false;
}

// --- The I/O thread ------------------------------------------------------------------------------

void Driver::run() {
  io_thread_ = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  const auto done = [this] {
    return stop_at_ != kNever && ((machine_.idle() && completions_.empty()) || now() >= stop_at_);
  };
  while (!done()) run_once(lock);
  fail_pending();
  auto calls = std::exchange(completions_, {});
  takes_no_calls_ = true;
  lock.unlock();
  for (auto& call : calls) call();
  wakeups_.wake_marked();
  // After the last callback was posted: each of them runs.
  callbacks_.end();
  losses_.end();
  lock.lock();
  has_ended_ = true;
  ended_.notify_all();
  became_idle_.notify_all();
}

// One round: run what is due, send, wait, receive. The lock is held on entry and on return.
void Driver::run_once(std::unique_lock<std::mutex>& lock) {
  const Instant now = this->now();
  machine_.on_timer(now);
  keeper_.on_timer(now);
  take_completions(now);
  post_leader_changes(now);
  maintain_connection(now);
  post_lease_changes();
  post_asks();
  report_connection();
  report_metrics();
  // No other thread sends while something is unsent. If it fails, receive() reports why.
  if (socket_ && !unsent_.empty()) static_cast<void>(socket_->send(unsent_));
  run_completions(lock);
  // Never longer than planned in an earlier round: a short call then need not wake us to plan its
  // timeout.
  Instant next = machine_.has_completions() || !completions_.empty() ? now : next_due(now);
  if (idle_waiters_ > 0) next = note_idle(next, now);
  sleeps_until_ = sleeps_until_ > now ? std::min(sleeps_until_, next) : next;
  waits_for_writable_ = !unsent_.empty();
  asleep_ = true;
  lock.unlock();

  std::string why;
  std::string received;
  poll(socket_ ? socket_->fd() : -1, waits_for_writable_, sleeps_until_);
  const bool alive = !socket_ || socket_->receive(received, why);

  lock.lock();
  asleep_ = false;
  // The socket first, then the clock: an answer must never be dated earlier than it arrived.
  if (!received.empty()) machine_.received(received, this->now());
  if (!alive) hang_up(why, this->now());
}

// Sends, and completes calls in batches. Between batches it sends the next commands of the callers
// that were woken first, so that pawld works on them while we wake the others.
void Driver::run_completions(std::unique_lock<std::mutex>& lock) {
  constexpr std::size_t kBatch = 16;
  auto calls = std::exchange(completions_, {});
  flush(lock);
  for (std::size_t at = 0; at < calls.size();) {
    lock.unlock();
    for (const std::size_t end = std::min(calls.size(), at + kBatch); at < end; ++at) {
      std::exchange(calls[at], nullptr)();
    }
    wakeups_.wake_marked();
    lock.lock();
    flush(lock);
  }
}

void Driver::poll(int fd, bool wants_send, Instant until) {
  set_timer(until);
  pollfd ready[3] = {{wake_fd_->get(), POLLIN, 0},
                     {timer_.get(), POLLIN, 0},
                     {fd, static_cast<short>(POLLIN | (wants_send ? POLLOUT : 0)), 0}};
  if (::poll(ready, 3, -1) <= 0) return;
  std::uint64_t count = 0;
  if (ready[0].revents != 0) [[maybe_unused]]
    const ssize_t got = read(wake_fd_->get(), &count, sizeof(count));
  if (ready[1].revents != 0) timer_set_to_ = kNotSet;
}

// Not the timeout of poll(), which does not run while the machine is suspended: the loss of a lease
// would be reported that much later. The time is absolute, so that a process that was stopped
// (SIGSTOP) is woken at once.
void Driver::set_timer(Instant until) {
  // A test may move the clock by more than this machine is up.
  const Instant at = until == kNever ? kNever : std::max(until - clock_offset(), Instant(1ns));
  if (at == std::exchange(timer_set_to_, at)) return;
  itimerspec setting{};  // zero: not set
  if (at != kNever) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch());
    setting.it_value.tv_sec = whole.count();
    setting.it_value.tv_nsec = (at.time_since_epoch() - whole).count();
  }
  PAWL_ASSERT(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &setting, nullptr) == 0);
}

Instant Driver::next_due(Instant now) const {
  // While connecting, the machine's timer asks for a connection at once; the connector wakes us.
  Instant of_machine = machine_.next_timer();
  if (connector_.busy()) of_machine = std::max(of_machine, now + 10ms);
  const bool replaces = machine_.wants_replacement() && !connector_.busy();
  return std::min({of_machine, keeper_.next_timer(), stop_at_, replaces ? replace_at_ : kNever});
}

void Driver::maintain_connection(Instant now) {
  if (machine_.wants_close() && socket_) hang_up(machine_.last_error(), now);
  if (const auto outcome = connector_.take(); outcome && socket_) {
    // A replacement. Not needed when the old connection has answered meanwhile.
    if (*outcome && machine_.wants_replacement()) {
      hang_up("no answer, but on another connection", now);
      use_connection(*std::move(*outcome), now);
    }
  } else if (outcome) {
    if (*outcome) {
      use_connection(*std::move(*outcome), now);
    } else {
      log("cannot connect to " + to_text(connecting_to_) + ": " + outcome->error().detail);
      machine_.disconnected(outcome->error().detail, now);
    }
  }
  if (connector_.busy()) return;
  if (!socket_ && machine_.wants_connection(now)) {
    connecting_to_ = machine_.node();
    connector_.start(connecting_to_, options_.connect_timeout);
  } else if (socket_ && machine_.wants_replacement() && now >= replace_at_) {
    replace_at_ = now + kReplacementPause;
    start_replacement();
  }
}

// The others first, if there are any: one that has become active answers at once, and one that
// stands by says so. The present one may be stopped, and then its kernel still accepts.
void Driver::start_replacement() {
  const Nodes& nodes = machine_.nodes();
  const std::size_t step = ++replacements_ % nodes.size();
  connecting_to_ = nodes.behind_current(step);
  connector_.start(connecting_to_, options_.connect_timeout,
                   step == 0 ? Connector::AnsweredBy::kPawld : Connector::AnsweredBy::kActive);
}

void Driver::use_connection(std::unique_ptr<Socket> socket, Instant now) {
  socket_ = std::move(socket);
  machine_.connected_to(connecting_to_, now);
  replacements_ = 0;
  count("connects", 1);
}

void Driver::hang_up(const std::string& why, Instant now) {
  socket_.reset();
  unsent_.clear();
  machine_.disconnected(why, now);
  log("connection lost: " + machine_.last_error());
  count("disconnects", 1);
}

void Driver::take_completions(Instant now) {
  for (Completion& done : machine_.take_completions()) {
    if (keeper_.on_completion(done, now)) continue;
    if (auto pending = acquires_.extract(done.call)) {
      take_acquired(std::move(pending.mapped()),
                    std::get<Result<GrantedLease>>(std::move(done.outcome)), now);
    } else if (auto released = releases_.extract(done.call)) {
      if (std::get<Result<ReleaseResult>>(done.outcome)) destructors_wait_until_ = kNever;
      completions_.push_back([done = std::move(released.mapped()),
                              result = std::get<Result<ReleaseResult>>(
                                  std::move(done.outcome))]() mutable { done(std::move(result)); });
    } else if (auto answered = commands_.extract(done.call)) {
      completions_.push_back([done = std::move(answered.mapped()),
                              result = std::get<Result<wire::Value>>(
                                  std::move(done.outcome))]() mutable { done(std::move(result)); });
    } else {
      watches_.on_completion(done, now);
    }
  }
}

void Driver::take_acquired(PendingAcquire pending, Result<GrantedLease> held, Instant now) {
  count(held ? "acquires" : "acquire_failures", 1);
  Result<KeptLease> result = Error{};
  if (held) {
    destructors_wait_until_ = kNever;
    const LeaseNumber number = keeper_.add(*held, pending.options, now);
    pending.holder->token = held->token;
    holders_.add(number, std::move(pending.holder));
    result = KeptLease{number, *std::move(held)};
  } else {
    Error why = held.error();
    if (why.code == Code::kBusy) {
      const auto own = first_live(holders_.on_locks(pending.holder->locks), now);
      if (own) why.detail += "; " + held_here(*own);
    }
    result = std::move(why);
  }
  completions_.push_back([done = std::move(pending.done), result = std::move(result)]() mutable {
    done(std::move(result));
  });
}

// --- Idle state, for tests -----------------------------------------------------------------------

// Called before the I/O thread sleeps until `next`. Records the idle state when nothing is left to
// do. Returns until when to sleep: only briefly when not idle.
Instant Driver::note_idle(Instant next, Instant now) {
  const bool connecting = !socket_ && connector_.busy();
  if (next <= now || !unsent_.empty() || sending_ || connecting) return std::min(next, now + 1ms);
  // Here, where all received bytes have been handled.
  idle_ = {};
  if (socket_) {
    idle_.local_port = socket_->local_port();
    idle_.sent = socket_->sent();
    idle_.received = socket_->received();
  }
  is_idle_ = true;
  became_idle_.notify_all();
  return next;
}

IdleState Driver::wait_until_idle(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  IdleState idle;
  {
    std::unique_lock lock(mutex_);
    ++idle_waiters_;
    is_idle_ = false;
    wake(*wake_fd_);
    became_idle_.wait_until(lock, until, [this] { return is_idle_ || has_ended_; });
    --idle_waiters_;
    idle = idle_;
    idle.ended = has_ended_ || !is_idle_;
    const Instant next = std::min(machine_.next_timer(), keeper_.next_timer());
    if (next != kNever) idle.next_timer = next - now();
  }
  const auto left = [until] {
    return std::max(0ms, std::chrono::ceil<Millis>(until - std::chrono::steady_clock::now()));
  };
  losses_.drain(left());
  callbacks_.drain(left());
  return idle;
}

// Completes every call that is still pending.
void Driver::fail_pending() {
  take_completions(now());
  for (const LeaseNumber lease : keeper_.leases()) keeper_.mark_lost(lease, std::string(kClosed));
  post_lease_changes();
  report_metrics();
  for (auto& [call, pending] : acquires_) {
    completions_.push_back([done = std::move(pending.done)] {
      done(Error{Code::kUnknown, "the client was closed before the reply arrived"});
    });
  }
  for (auto& [call, released] : releases_) {
    completions_.push_back([done = std::move(released)] {
      done(Error{Code::kUnknown, "the client was closed before the release was confirmed"});
    });
  }
  for (auto& [call, answered] : commands_) {
    completions_.push_back([done = std::move(answered)] {
      done(Error{Code::kUnavailable, "the client was closed before the reply arrived"});
    });
  }
  acquires_.clear();
  releases_.clear();
  commands_.clear();
  socket_.reset();
}

}  // namespace pawl::client
