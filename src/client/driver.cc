#include "client/driver.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kClosed = "its client was closed";

std::string held_here(Token token) {
  return "this client holds it, as token " + std::to_string(token.value);
}

Error waits_for_itself(Token token) {
  return {Code::kInvalid, "this thread would wait for itself: it took the lock already, as token " +
                              std::to_string(token.value) + " (see AcquireOptions::wait_for_own)"};
}

std::shared_ptr<UniqueFd> make_wake_fd() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  PAWL_ASSERT(fd >= 0);
  return std::make_shared<UniqueFd>(fd);
}

void wake(const UniqueFd& fd) {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = write(fd.get(), &one, sizeof(one));
}

// A thread that was cancelled here (pthread_cancel) would leave nobody to send, and an answer
// nowhere to go.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// The lock is held for microseconds: to sleep for it would cost more than it takes. Longer than
// that only when its holder was put aside, and then sleeping is right.
std::unique_lock<std::mutex> soon(std::mutex& mutex) {
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

}  // namespace

Driver::Driver(std::vector<Address> addresses, DriverOptions options)
    : addresses_(std::move(addresses)),
      options_(std::move(options)),
      wake_fd_(make_wake_fd()),
      machine_(random_, options_.machine),
      keeper_(machine_, random_, options_.patience),
      watches_(machine_),
      connector_([fd = wake_fd_] { wake(*fd); }) {
  PAWL_ASSERT(!addresses_.empty());
}

std::shared_ptr<Driver> Driver::start(std::vector<Address> addresses, DriverOptions options) {
  std::shared_ptr<Driver> driver(new Driver(std::move(addresses), std::move(options)));
  // Detached, and an owner of what it works on: a child of fork() can then end without a thread to
  // join.
  std::thread([driver] { driver->run(); }).detach();
  if (driver->options_.test_time) driver->options_.test_time->enroll(driver);
  return driver;
}

// --- Callers' threads ----------------------------------------------------------------------------

Instant Driver::now() const {
  return boot_now() + moved();
}

Nanos Driver::moved() const {
  return options_.test_time ? options_.test_time->moved() : Nanos(0);
}

CallId Driver::acquire(AcquireCall call, KeepOptions keep, std::shared_ptr<Holder> holder,
                       OnSelfWait on_self_wait, Acquired done) {
  CallId id{};
  std::optional<Token> own;
  {
    std::unique_lock lock = soon(mutex_);
    const Instant now = this->now();
    const bool may_refuse = call.wait > Millis(0) && on_self_wait == OnSelfWait::kRefuse;
    if (may_refuse) own = first_live(holders_.own(*holder), now);
    if (stop_at_ == kNever && !own) {
      id = machine_.acquire(std::move(call), now);
      asked_.emplace(id, Asked{keep, std::move(holder), std::exchange(done, nullptr)});
      went_on(lock);
    }
  }
  if (done) done(own ? waits_for_itself(*own) : Error{Code::kUnavailable, std::string(kClosed)});
  return id;
}

// Of those that will be renewed on and on: who waits for another kind gets it before long.
std::optional<Token> Driver::first_live(const std::vector<LeaseNumber>& leases, Instant now) {
  for (const LeaseNumber lease : leases) {
    if (keeper_.look(lease, now).state < LeaseState::kUncertain) return holders_.find(lease)->token;
  }
  return std::nullopt;
}

void Driver::cancel(CallId call) {
  std::unique_lock lock = soon(mutex_);
  machine_.cancel(call, this->now());
  went_on(lock);
}

Standing Driver::look(LeaseNumber lease) {
  const std::unique_lock lock = soon(mutex_);
  return keeper_.look(lease, this->now());
}

void Driver::progress(LeaseNumber lease) {
  std::unique_lock lock = soon(mutex_);
  keeper_.progress(lease, this->now());
  went_on(lock);
}

Driver::Kept Driver::release(LeaseNumber lease, Nanos wait_at_most, Released done) {
  Kept kept = Kept::kRemembered;
  {
    std::unique_lock lock = soon(mutex_);
    const Instant now = this->now();
    if (!has_ended_) {
      if (const auto call = keeper_.release(lease, now + wait_at_most, now)) {
        releasing_.emplace(*call, std::exchange(done, nullptr));
        if (!keeper_.knows(lease)) {
          holders_.remove(lease);
          kept = Kept::kForgotten;
        }
        went_on(lock);
      }
    }
  }
  if (done) done(Release{.was_live = false});
  return kept;
}

void Driver::forget(LeaseNumber lease) {
  const std::unique_lock lock = soon(mutex_);
  keeper_.forget(lease);
  holders_.remove(lease);
}

void Driver::command(CommandCall call, Answered done) {
  {
    std::unique_lock lock = soon(mutex_);
    if (stop_at_ == kNever) {
      asking_.emplace(machine_.command(std::move(call), now()), std::exchange(done, nullptr));
      went_on(lock);
    }
  }
  if (done) done(Error{Code::kUnavailable, std::string(kClosed)});
}

WatchNumber Driver::watch(std::string name, LeaderWatches::Told told) {
  const std::lock_guard lock(mutex_);
  if (stop_at_ != kNever) return {};
  wake(*wake_fd_);
  return watches_.add(std::move(name), std::move(told), now());
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
      for (const auto& [call, asked] : asked_) machine_.cancel(call, now);
      for (const auto& [call, answered] : asking_) machine_.cancel(call, now);
      watches_.remove_all(now);
      for (const LeaseNumber lease : keeper_.leases()) {
        keeper_.end(lease, std::string(kClosed));
        keeper_.release(lease, stop_at_, now);
      }
      wake(*wake_fd_);
    }
    ended_.wait_until(lock, limit, [this] { return has_ended_; });
  }
  callbacks_.finish(
      std::max(0ms, std::chrono::ceil<Millis>(limit - std::chrono::steady_clock::now())));
}

// After every call: sends, and wakes the I/O thread if it would sleep too long.
void Driver::went_on(std::unique_lock<std::mutex>& lock) {
  if (!asleep_) return;  // It sends, and looks at everything, before it sleeps.
  const NotCancelled until_done;
  flush(lock);
  const bool too_long = std::min(machine_.next_timer(), keeper_.next_timer()) < sleeps_until_;
  const bool full = !unsent_.empty() && !awaits_room_;
  if (too_long || full || machine_.has_completions()) wake(*wake_fd_);
}

// Sends what there is to send, without the lock while it does. Returns at once when another thread
// is at it: that one takes along what we have.
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
    if (socket != socket_) continue;  // It was given up meanwhile, and with it what it was sent.
    if (!alive) break;                // Reading will tell, after what can still be read.
    unsent_ = std::move(bytes);       // What did not fit.
  }
  sending_ = false;
}

// --- The I/O thread ------------------------------------------------------------------------------

void Driver::run() {
  io_thread_ = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  const auto done = [this] {
    return stop_at_ != kNever && ((machine_.idle() && to_call_.empty()) || now() >= stop_at_);
  };
  while (!done()) turn(lock);
  end_all();
  auto calls = std::exchange(to_call_, {});
  has_ended_ = true;
  ended_.notify_all();
  rested_.notify_all();
  lock.unlock();
  for (auto& call : calls) call();
  waking_.wake();
}

// One round: what is due, then out with it, then wait. The lock is held on entry and on return.
void Driver::turn(std::unique_lock<std::mutex>& lock) {
  const Instant now = this->now();
  machine_.timer(now);
  keeper_.timer(now);
  take_completions(now);
  tell_leaders(now);
  tend_connection(now);
  tell_changes();
  tell_metrics();
  // What did not fit: nobody else sends while there is any. If it fails, reading will tell.
  if (socket_ && !unsent_.empty()) static_cast<void>(socket_->send(unsent_));
  answer(lock);
  // Never longer than planned before: then a caller that comes and goes need not wake us to plan
  // its time-out.
  Instant next = machine_.has_completions() || !to_call_.empty() ? now : next_due(now);
  if (rest_wanted_ > 0) next = come_to_rest(next, now);
  sleeps_until_ = sleeps_until_ > now ? std::min(sleeps_until_, next) : next;
  awaits_room_ = !unsent_.empty();
  asleep_ = true;
  lock.unlock();

  std::string why;
  std::string received;
  poll(socket_ ? socket_->fd() : -1, awaits_room_, sleeps_until_);
  const bool alive = !socket_ || socket_->receive(received, why);

  lock.lock();
  asleep_ = false;
  // The socket first, then the clock: an answer must never look younger than it is.
  if (!received.empty()) machine_.received(received, this->now());
  if (!alive) hang_up(why, this->now());
}

// Sends, and answers callers. In between it sends what those answered first already ask for next,
// so that pawld is at work while we still wake the others.
void Driver::answer(std::unique_lock<std::mutex>& lock) {
  constexpr std::size_t kAtOnce = 16;
  auto calls = std::exchange(to_call_, {});
  flush(lock);
  for (std::size_t at = 0; at < calls.size();) {
    lock.unlock();
    for (const std::size_t end = std::min(calls.size(), at + kAtOnce); at < end; ++at) {
      std::exchange(calls[at], nullptr)();
    }
    waking_.wake();
    lock.lock();
    flush(lock);
  }
}

void Driver::poll(int fd, bool wants_send, Instant until) {
  pollfd ready[2] = {{wake_fd_->get(), POLLIN, 0},
                     {fd, static_cast<short>(POLLIN | (wants_send ? POLLOUT : 0)), 0}};
  // From a fresh look at the clock: the calls before this may have taken a while. Not ppoll(): in a
  // process that was stopped meanwhile (SIGSTOP) it goes on with what was left of its time then,
  // and a lease that is long over would be said to be lost as much later. poll() remembers when its
  // time is up.
  if (::poll(ready, 2, poll_timeout(until - now())) <= 0) return;
  std::uint64_t wakes = 0;
  if (ready[0].revents != 0) [[maybe_unused]]
    const ssize_t got = read(wake_fd_->get(), &wakes, sizeof(wakes));
}

Instant Driver::next_due(Instant now) const {
  // While connecting, the machine would have us connect now; its result wakes us.
  Instant of_machine = machine_.next_timer();
  if (connector_.busy()) of_machine = std::max(of_machine, now + 10ms);
  return std::min({of_machine, keeper_.next_timer(), stop_at_});
}

void Driver::tend_connection(Instant now) {
  if (machine_.wants_close() && socket_) hang_up(machine_.trouble(), now);
  if (const auto outcome = connector_.take()) {
    if (*outcome) {
      socket_ = *std::move(*outcome);
      machine_.connected(now, to_text(addresses_[connecting_to_]));
      count("connects", 1);
    } else {
      log("cannot connect: " + outcome->error().detail);
      machine_.disconnected(outcome->error().detail, now);
    }
  }
  if (!socket_ && !connector_.busy() && machine_.wants_connection(now)) {
    connecting_to_ = next_address_;
    connector_.start(addresses_[next_address_], options_.connect_timeout);
    next_address_ = (next_address_ + 1) % addresses_.size();
  }
}

void Driver::hang_up(const std::string& why, Instant now) {
  socket_.reset();
  unsent_.clear();
  machine_.disconnected(why, now);
  log("connection lost: " + machine_.trouble());
  count("disconnects", 1);
}

void Driver::take_completions(Instant now) {
  for (Completion& done : machine_.take_completions()) {
    if (keeper_.take(done, now)) continue;
    if (auto asked = asked_.extract(done.call)) {
      take_acquired(std::move(asked.mapped()), std::get<Result<Held>>(std::move(done.outcome)),
                    now);
    } else if (auto released = releasing_.extract(done.call)) {
      to_call_.push_back([tell = std::move(released.mapped()),
                          result = std::get<Result<Release>>(std::move(done.outcome))]() mutable {
        tell(std::move(result));
      });
    } else if (auto answered = asking_.extract(done.call)) {
      to_call_.push_back([tell = std::move(answered.mapped()),
                          result = std::get<Result<wire::Value>>(
                              std::move(done.outcome))]() mutable { tell(std::move(result)); });
    } else {
      watches_.take(done, now);
    }
  }
}

void Driver::take_acquired(Asked asked, Result<Held> held, Instant now) {
  count(held ? "acquires" : "acquire_failures", 1);
  Result<Grant> result = Error{};
  if (held) {
    const LeaseNumber number = keeper_.adopt(*held, asked.keep, now);
    asked.holder->token = held->token;
    holders_.add(number, std::move(asked.holder));
    result = Grant{number, *std::move(held)};
  } else {
    Error why = held.error();
    if (why.code == Code::kBusy) {
      const auto own = first_live(holders_.on(asked.holder->locks), now);
      if (own) why.detail += "; " + held_here(*own);
    }
    result = std::move(why);
  }
  to_call_.push_back([tell = std::move(asked.done), result = std::move(result)]() mutable {
    tell(std::move(result));
  });
}

// --- Resting, for tests --------------------------------------------------------------------------

// Whether a turn that ends with this wait has left nothing undone. If not, it is to look again
// soon.
Instant Driver::come_to_rest(Instant next, Instant now) {
  if (next <= now || !unsent_.empty() || sending_ || connector_.busy())
    return std::min(next, now + 1ms);
  // Noted here, where all that was received has been taken in.
  rest_ = {};
  if (socket_) {
    rest_.local_port = socket_->local_port();
    rest_.sent = socket_->sent();
    rest_.received = socket_->received();
  }
  resting_ = true;
  rested_.notify_all();
  return next;
}

Rest Driver::rest(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  Rest rest;
  {
    std::unique_lock lock(mutex_);
    ++rest_wanted_;
    resting_ = false;
    wake(*wake_fd_);
    rested_.wait_until(lock, until, [this] { return resting_ || has_ended_; });
    --rest_wanted_;
    rest = rest_;
    rest.ended = has_ended_ || !resting_;
    const Instant next = std::min(machine_.next_timer(), keeper_.next_timer());
    if (next != kNever) rest.next_timer = next - now();
  }
  callbacks_.drain(
      std::max(0ms, std::chrono::ceil<Millis>(until - std::chrono::steady_clock::now())));
  return rest;
}

// --- Telling -------------------------------------------------------------------------------------

void Driver::tell_changes() {
  for (Change& change : keeper_.take_changes()) {
    auto holder = holders_.find(change.lease);
    if (!holder) continue;
    if (change.state >= LeaseState::kUncertain) {
      log("a lease is " + std::string(to_text(change.state)) + ": " + change.reason);
    }
    if (change.explains) continue;
    callbacks_.post(
        [holder = std::move(holder), state = change.state, reason = std::move(change.reason)] {
          if (state >= LeaseState::kUncertain) holder->lost.request_stop();
          if (holder->on_change) holder->on_change(state, reason);
        });
  }
}

void Driver::tell_leaders(Instant now) {
  for (LeaderWatches::News& news : watches_.take_news(now)) {
    callbacks_.post(
        [told = std::move(news.told), change = std::move(news.change)] { told(change); });
  }
}

void Driver::log(std::string line) {
  if (!options_.log) return;
  callbacks_.offer([hook = options_.log, line = std::move(line)] { hook(line); });
}

void Driver::count(std::string_view name, double value) {
  if (!options_.metric) return;
  callbacks_.offer([hook = options_.metric, name, value] { hook(name, value); });
}

void Driver::tell_metrics() {
  const Keeper::Counters& counted = keeper_.counters();
  const auto tell = [this](std::string_view name, std::uint64_t& told, std::uint64_t is) {
    if (const std::uint64_t more = is - std::exchange(told, is); more > 0) {
      count(name, static_cast<double>(more));
    }
  };
  tell("renewals", told_.renewals, counted.renewals);
  tell("renewal_commands", told_.renewal_commands, counted.renewal_commands);
  tell("renewal_failures", told_.renewal_failures, counted.renewal_failures);
  tell("leases_lost", told_.lost, counted.lost);
}

// Whoever still waits for an answer gets one.
void Driver::end_all() {
  take_completions(now());
  for (const LeaseNumber lease : keeper_.leases()) keeper_.end(lease, std::string(kClosed));
  tell_changes();
  tell_metrics();
  for (auto& [call, asked] : asked_) {
    to_call_.push_back([tell = std::move(asked.done)] {
      tell(Error{Code::kUnknown, "the client was closed before the answer came"});
    });
  }
  for (auto& [call, released] : releasing_) {
    to_call_.push_back([tell = std::move(released)] {
      tell(Error{Code::kUnknown, "the client was closed before the release was confirmed"});
    });
  }
  for (auto& [call, answered] : asking_) {
    to_call_.push_back([tell = std::move(answered)] {
      tell(Error{Code::kUnavailable, "the client was closed before the answer came"});
    });
  }
  asked_.clear();
  releasing_.clear();
  asking_.clear();
  socket_.reset();
}

}  // namespace pawl::client
