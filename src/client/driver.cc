#include "client/driver.h"

#include <poll.h>
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

timespec to_timespec(Nanos span) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

}  // namespace

Driver::Driver(std::vector<Address> addresses, DriverOptions options)
    : addresses_(std::move(addresses)),
      options_(std::move(options)),
      wake_fd_(make_wake_fd()),
      machine_(random_, options_.machine),
      keeper_(machine_, random_),
      watches_(machine_),
      connector_([fd = wake_fd_] { wake(*fd); }) {
  PAWL_ASSERT(!addresses_.empty());
}

std::shared_ptr<Driver> Driver::start(std::vector<Address> addresses, DriverOptions options) {
  std::shared_ptr<Driver> driver(new Driver(std::move(addresses), std::move(options)));
  // Detached, and an owner of what it works on: a child of fork() can then end without a thread to join.
  std::thread([driver] { driver->run(); }).detach();
  if (driver->options_.test_time) driver->options_.test_time->enroll(driver);
  return driver;
}

// --- Callers' threads ------------------------------------------------------------------------------------

Instant Driver::now() const {
  return boot_now() + moved();
}

Nanos Driver::moved() const {
  return options_.test_time ? options_.test_time->moved() : Nanos(0);
}

CallId Driver::acquire(AcquireCall call, Terms terms, std::shared_ptr<Signal> signal, Acquired done) {
  CallId id{};
  {
    const std::lock_guard lock(mutex_);
    if (stop_at_ == kNever) {
      id = machine_.acquire(std::move(call), now());
      asked_.emplace(id, Asked{terms, std::move(signal), std::exchange(done, nullptr)});
    }
  }
  if (done) {
    done(Error{Code::kUnavailable, std::string(kClosed)});
  } else {
    wake(*wake_fd_);
  }
  return id;
}

void Driver::cancel(CallId call) {
  const std::lock_guard lock(mutex_);
  machine_.cancel(call, now());
  wake(*wake_fd_);
}

Standing Driver::look(LeaseNumber lease) {
  const std::lock_guard lock(mutex_);
  return keeper_.look(lease, now());
}

void Driver::progress(LeaseNumber lease) {
  const std::lock_guard lock(mutex_);
  const Instant now = this->now();
  keeper_.progress(lease, now);
  // It is called often; the thread is needed only when a renewal had been held back.
  if (keeper_.next_timer() <= now) wake(*wake_fd_);
}

void Driver::release(LeaseNumber lease, Nanos wait_at_most, Released done) {
  {
    const std::lock_guard lock(mutex_);
    const Instant now = this->now();
    if (!has_ended_) {
      if (const auto call = keeper_.release(lease, now + wait_at_most, now)) {
        releasing_.emplace(*call, std::exchange(done, nullptr));
      }
    }
  }
  if (done) {
    done(Release{.was_live = false});
  } else {
    wake(*wake_fd_);
  }
}

void Driver::forget(LeaseNumber lease) {
  const std::lock_guard lock(mutex_);
  keeper_.forget(lease);
  signals_.erase(lease);
}

void Driver::command(CommandCall call, Answered done) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_at_ == kNever) {
      asking_.emplace(machine_.command(std::move(call), now()), std::exchange(done, nullptr));
    }
  }
  if (done) return done(Error{Code::kUnavailable, std::string(kClosed)});
  wake(*wake_fd_);
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
  callbacks_.finish(std::max(0ms, std::chrono::ceil<Millis>(limit - std::chrono::steady_clock::now())));
}

// --- The I/O thread --------------------------------------------------------------------------------------

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
  unsent_ += machine_.take_output();
  Nanos timeout = to_call_.empty() ? until_next(now) : Nanos(0);
  if (rest_wanted_ > 0) timeout = come_to_rest(timeout);
  auto calls = std::exchange(to_call_, {});
  lock.unlock();

  for (auto& call : calls) call();
  std::string why;
  std::string received;
  bool alive = true;
  if (socket_) alive = socket_->send(unsent_);
  if (!alive) why = "the connection was closed";
  if (alive) poll(socket_ ? socket_->fd() : -1, !unsent_.empty(), timeout);
  if (alive && socket_) alive = socket_->receive(received, why);

  lock.lock();
  // The socket first, then the clock: an answer must never look younger than it is.
  if (!received.empty()) machine_.received(received, this->now());
  if (!alive) hang_up(why, this->now());
}

void Driver::poll(int fd, bool wants_send, Nanos timeout) {
  pollfd ready[2] = {{wake_fd_->get(), POLLIN, 0},
                     {fd, static_cast<short>(POLLIN | (wants_send ? POLLOUT : 0)), 0}};
  const timespec limit = to_timespec(std::max(timeout, Nanos(0)));
  if (ppoll(ready, 2, timeout == Nanos::max() ? nullptr : &limit, nullptr) <= 0) return;
  std::uint64_t wakes = 0;
  if (ready[0].revents != 0) [[maybe_unused]]
    const ssize_t got = read(wake_fd_->get(), &wakes, sizeof(wakes));
}

Nanos Driver::until_next(Instant now) const {
  // While connecting, the machine would have us connect now; its result wakes us.
  Instant of_machine = machine_.next_timer();
  if (connector_.busy()) of_machine = std::max(of_machine, now + 10ms);
  const Instant next = std::min({of_machine, keeper_.next_timer(), stop_at_});
  return next == kNever ? Nanos::max() : next - now;
}

void Driver::tend_connection(Instant now) {
  if (machine_.wants_close() && socket_) hang_up(machine_.trouble(), now);
  if (const auto outcome = connector_.take()) {
    if (*outcome) {
      socket_ = *std::move(*outcome);
      machine_.connected(now);
      count("connects", 1);
    } else {
      log("cannot connect: " + outcome->error().detail);
      machine_.disconnected(outcome->error().detail, now);
    }
  }
  if (!socket_ && !connector_.busy() && machine_.wants_connection(now)) {
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
      take_acquired(std::move(asked.mapped()), std::get<Result<Held>>(done.outcome), now);
    } else if (auto released = releasing_.extract(done.call)) {
      to_call_.push_back([tell = std::move(released.mapped()),
                          result = std::get<Result<Release>>(done.outcome)] { tell(result); });
    } else if (auto answered = asking_.extract(done.call)) {
      to_call_.push_back([tell = std::move(answered.mapped()),
                          result = std::get<Result<wire::Value>>(done.outcome)] { tell(result); });
    } else {
      watches_.take(done, now);
    }
  }
}

void Driver::take_acquired(Asked asked, const Result<Held>& held, Instant now) {
  count(held ? "acquires" : "acquire_failures", 1);
  Result<Grant> result = Error{};
  if (held) {
    const LeaseNumber number = keeper_.adopt(*held, asked.terms, now);
    signals_.emplace(number, std::move(asked.signal));
    result = Grant{number, *held};
  } else {
    result = held.error();
  }
  to_call_.push_back([tell = std::move(asked.done), result = std::move(result)] { tell(result); });
}

// --- Resting, for tests ----------------------------------------------------------------------------------

// Whether a turn that ends with this wait has left nothing undone. If not, it is to look again soon.
Nanos Driver::come_to_rest(Nanos timeout) {
  if (timeout <= 0ns || !unsent_.empty() || connector_.busy()) return std::min<Nanos>(timeout, 1ms);
  // Noted here, where all that was received has been taken in.
  rest_ = {};
  if (socket_) {
    rest_.local_port = socket_->local_port();
    rest_.sent = socket_->sent();
    rest_.received = socket_->received();
  }
  resting_ = true;
  rested_.notify_all();
  return timeout;
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
  callbacks_.drain(std::max(0ms, std::chrono::ceil<Millis>(until - std::chrono::steady_clock::now())));
  return rest;
}

// --- Telling ---------------------------------------------------------------------------------------------

void Driver::tell_changes() {
  for (Change& change : keeper_.take_changes()) {
    const auto found = signals_.find(change.lease);
    if (found == signals_.end()) continue;
    if (change.state >= LeaseState::kUncertain) {
      log("a lease is " + std::string(to_text(change.state)) + ": " + change.reason);
    }
    callbacks_.post([signal = found->second, state = change.state, reason = std::move(change.reason)] {
      if (state >= LeaseState::kUncertain) signal->lost.request_stop();
      if (signal->on_change) signal->on_change(state, reason);
    });
  }
}

void Driver::tell_leaders(Instant now) {
  for (LeaderWatches::News& news : watches_.take_news(now)) {
    callbacks_.post([told = std::move(news.told), change = std::move(news.change)] { told(change); });
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
