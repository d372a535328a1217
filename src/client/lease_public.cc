#include "pawl/lease.h"

#include <algorithm>

#include "base/hex.h"
#include "client/answer.h"
#include "client/client_handle.h"
#include "client/lease_handle.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

// How long to look for the reason of a refusal that stands anyway.
constexpr auto kStatusWait = 2s;

}  // namespace

std::string_view to_text(LeaseState state) {
  switch (state) {
    case LeaseState::kHeld:
      return "held";
    case LeaseState::kAtRisk:
      return "at risk";
    case LeaseState::kUncertain:
      return "uncertain";
    case LeaseState::kLost:
      return "lost";
  }
  return "lost";
}

client::Standing Lease::State::look() const {
  if (driver->forked())
    return {LeaseState::kLost, "it belongs to the parent of this process (fork)", {}};
  return driver->look(grant.number);
}

Lease::Lease(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  state_ = std::move(other.state_);
  return *this;
}

Lease::~Lease() {
  let_go();
}

void Lease::let_go() noexcept {
  if (!state_) return;
  if (state_->driver->forked()) {
    // Not even destroyed: what belongs to threads that do not exist here cannot be.
    static_cast<void>(state_.release());
    return;
  }
  if (state_->forgotten) return state_.reset();  // Released.
  if (state_->driver
          ->on_io_thread()) {  // Nobody took the lease; this thread is the one that would answer.
    state_->driver->release(state_->grant.number, kDestructorWait,
                            [](const Result<client::Release>&) {});
  } else {
    static_cast<void>(release(kDestructorWait));
  }
  state_->driver->forget(state_->grant.number);
  state_.reset();
}

std::uint64_t Lease::token() const {
  return state_->grant.held.token.value;
}

std::uint64_t Lease::floor() const {
  return state_->grant.held.floor.value;
}

std::optional<std::uint32_t> Lease::slot() const {
  return state_->grant.held.slot;
}

const std::vector<std::string>& Lease::locks() const {
  return state_->holder->locks;
}

std::chrono::milliseconds Lease::ttl() const {
  return state_->grant.held.ttl;
}

std::string Lease::secret() const {
  return to_hex(state_->grant.held.lease);
}

LeaseState Lease::state() const {
  return state_->look().state;
}

std::string Lease::reason() const {
  return state_->look().reason;
}

Result<void> Lease::check() const {
  client::Standing now = state_->look();
  if (now.state < LeaseState::kUncertain) return {};
  return Error{Code::kLeaseLost, std::string(to_text(now.state)) + ": " + std::move(now.reason)};
}

std::chrono::nanoseconds Lease::remaining() const {
  const client::Standing now = state_->look();
  if (now.state == LeaseState::kLost) return 0ns;
  return std::max<std::chrono::nanoseconds>(0ns, now.deadline - state_->driver->now());
}

std::chrono::nanoseconds Lease::deadline_boottime() const {
  return state_->look().deadline.time_since_epoch() - state_->driver->moved();
}

std::stop_token Lease::lost() const {
  if (state_->look().state < LeaseState::kUncertain) return state_->holder->lost.get_token();
  // The callback thread may not have come to it yet; the caller need not wait for that.
  std::stop_source over;
  over.request_stop();
  return over.get_token();
}

void Lease::progress() const {
  if (!state_->driver->forked()) state_->driver->progress(state_->grant.number);
}

Error Lease::stale(std::uint64_t max) const {
  const Error plain{Code::kStaleToken,
                    "a newer holder has been here: its token was " + std::to_string(max)};
  if (state_->driver->forked()) return plain;
  client::Answer<wire::Value> answer(state_->driver->waking(), client::this_thread());
  state_->driver->command({.words = {"STATUS"}, .give_up = state_->driver->now() + kStatusWait},
                          [&answer](Result<wire::Value> status) { answer.set(std::move(status)); });
  const Result<wire::Value> status = answer.wait();
  const wire::Value* last = status ? status->find("last_token") : nullptr;
  if (last == nullptr || static_cast<std::uint64_t>(last->as_integer().value_or(0)) >= max)
    return plain;
  return {Code::kIssuerBehind,
          "a guard has seen token " + std::to_string(max) + ", and pawld has granted none above " +
              std::to_string(last->as_integer().value_or(0)) +
              ": its store went back in time. Stop everything that uses it; then: pawl raise " +
              std::to_string(max) + " --reason …"};
}

Result<bool> Lease::release(std::chrono::milliseconds wait_at_most) {
  if (state_->driver->forked()) return Error{Code::kLeaseLost, state_->look().reason};
  client::Answer<client::Release> answer(state_->driver->waking(), client::this_thread());
  const auto now_is =
      state_->driver->release(state_->grant.number, wait_at_most,
                              [&answer](auto result) { answer.set(std::move(result)); });
  if (now_is == client::Driver::Kept::kForgotten) state_->forgotten = true;
  const Result<client::Release> released = answer.wait();
  if (!released) return released.error();
  return released->was_live;
}

}  // namespace pawl
