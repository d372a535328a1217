#include "client/blocking_connection.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kFarewell = 1s;
constexpr Nanos kNapMax = 1h;  // Longer than any timer, and fits a timespec.

void nap(Nanos span) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(span);
  const timespec left{static_cast<time_t>(seconds.count()),
                      static_cast<long>((span - seconds).count())};
  nanosleep(&left, nullptr);  // A signal ends it early; the caller looks again.
}

}  // namespace

BlockingConnection::BlockingConnection(std::vector<Address> addresses, Random& random,
                                       ConnectionOptions options)
    : addresses_(std::move(addresses)),
      options_(std::move(options)),
      machine_(random, options_.machine) {
  PAWL_ASSERT(!addresses_.empty());
}

BlockingConnection::~BlockingConnection() {
  const Instant end = boot_now() + kFarewell;
  while (!machine_.idle() && socket_.is_open() && boot_now() < end) turn(end);
}

Instant BlockingConnection::limit(Instant asked, Millis wait) const {
  return asked == kNever ? boot_now() + wait + options_.call_timeout : asked;
}

Result<Held> BlockingConnection::acquire(AcquireCall call) {
  call.give_up = limit(call.give_up, call.wait);
  position_ = 0;
  return finish<Held>(machine_.acquire(std::move(call), boot_now()));
}

Result<Renewal> BlockingConnection::renew(RenewCall call) {
  call.give_up = limit(call.give_up, 0ms);
  return finish<Renewal>(machine_.renew(call, boot_now()));
}

Result<Release> BlockingConnection::release(ReleaseCall call) {
  call.give_up = limit(call.give_up, 0ms);
  return finish<Release>(machine_.release(call, boot_now()));
}

Result<wire::Value> BlockingConnection::command(CommandCall call) {
  call.give_up = limit(call.give_up, 0ms);
  return finish<wire::Value>(machine_.command(std::move(call), boot_now()));
}

template <class T>
Result<T> BlockingConnection::finish(CallId call) {
  for (;;) {
    for (Completion& done : machine_.take_completions()) {
      if (done.call == call) return std::get<Result<T>>(std::move(done.outcome));
    }
    turn(kNever);
    report_position(call);
  }
}

void BlockingConnection::report_position(CallId call) {
  const auto position = machine_.position(call);
  if (!position || *position == position_ || !options_.on_queued) return;
  position_ = *position;
  options_.on_queued(position_);
}

void BlockingConnection::report_trouble() {
  if (!machine_.idle() && options_.on_trouble) options_.on_trouble(machine_.trouble());
}

void BlockingConnection::turn(Instant until) {
  if (machine_.wants_connection(boot_now())) connect();
  until = std::min(until, machine_.next_timer());
  if (socket_.is_open()) {
    exchange(until);
  } else if (!machine_.idle()) {
    nap(std::clamp(until - boot_now(), Nanos(0), kNapMax));
  }
  machine_.timer(boot_now());
  if (machine_.wants_close()) hang_up(machine_.trouble());
}

// One round over all addresses, beginning behind the one that was of no use last time.
void BlockingConnection::connect() {
  std::string why;
  for (std::size_t tried = 0; tried < addresses_.size(); ++tried) {
    const auto connected = socket_.connect(addresses_[next_address_], options_.connect_timeout);
    if (connected) return machine_.connected(boot_now(), to_text(addresses_[next_address_]));
    if (connected.error().code == Code::kInvalid) ++misfits_;
    why += (why.empty() ? "" : "; ") + connected.error().detail;
    next_address_ = (next_address_ + 1) % addresses_.size();
  }
  machine_.disconnected(why, boot_now());
  machine_.unreachable();
  report_trouble();
}

void BlockingConnection::hang_up(const std::string& why) {
  const std::string at = to_text(addresses_[next_address_]);
  if (socket_.is_misfit()) ++misfits_;
  socket_.close();
  unsent_.clear();
  next_address_ = (next_address_ + 1) % addresses_.size();
  machine_.disconnected(at + ": " + why, boot_now());
  if (misfits_ >= addresses_.size()) machine_.unreachable();
  report_trouble();
}

void BlockingConnection::exchange(Instant until) {
  unsent_ += machine_.take_output();
  if (!socket_.send(unsent_)) return hang_up("the connection was lost");
  std::string received, why;
  const Nanos timeout = std::min(until - boot_now(), kNapMax);
  const bool alive = socket_.wait(received, !unsent_.empty(), timeout, why);
  // The clock after the socket: an answer must never look younger than it is.
  if (!received.empty()) misfits_ = 0;
  if (!received.empty()) machine_.received(received, boot_now());
  if (!alive) hang_up(why);
}

}  // namespace pawl::client
