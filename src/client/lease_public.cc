#include "pawl/lease.h"

#include <algorithm>

#include "base/hex.h"
#include "client/pending_result.h"
#include "client/public_state.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

// How long to ask for the reason of a refusal that stands anyway.
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

client::LeaseStatus Lease::State::status() const {
  if (driver->forked())
    return {.state = LeaseState::kLost,
            .reason = "it belongs to the parent of this process (fork)"};
  return driver->status(lease.number);
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
    // Leaked: its threads do not exist in this process, so it cannot be destroyed.
    static_cast<void>(state_.release());
    return;
  }
  // The I/O thread cannot wait for its own answer, and nothing it does may wait for a callback.
  const bool may_wait = !state_->driver->on_io_thread();
  if (!state_->forgotten) {  // Else released.
    const auto wait = state_->driver->destructor_wait(kDestructorWait);
    if (may_wait) {
      static_cast<void>(release(wait));
    } else {
      state_->driver->release(state_->lease.number, wait,
                              [](const Result<client::ReleaseResult>&) {});
    }
    state_->driver->forget(state_->lease.number);
  }
  if (const auto& listener = state_->holder->on_change)
    listener->close(may_wait ? kDestructorWait : 0ms);
  if (const auto& listener = state_->holder->on_release_wanted)
    listener->close(may_wait ? kDestructorWait : 0ms);
  state_.reset();
}

std::uint64_t Lease::token() const {
  return state_->lease.granted.token.value;
}

std::uint64_t Lease::floor() const {
  return state_->lease.granted.floor.value;
}

std::optional<std::uint32_t> Lease::slot() const {
  return state_->lease.granted.slot;
}

const std::vector<std::string>& Lease::locks() const {
  return state_->holder->locks;
}

std::chrono::milliseconds Lease::ttl() const {
  return state_->lease.granted.ttl;
}

std::string Lease::secret() const {
  return to_hex(state_->lease.granted.lease);
}

LeaseState Lease::state() const {
  return state_->status().state;
}

std::string Lease::reason() const {
  return state_->status().reason;
}

Result<void> Lease::check() const {
  client::LeaseStatus now = state_->status();
  if (now.state < LeaseState::kUncertain) return {};
  return Error{Code::kLeaseLost, std::string(to_text(now.state)) + ": " + std::move(now.reason)};
}

std::chrono::nanoseconds Lease::remaining() const {
  const client::LeaseStatus now = state_->status();
  if (now.state == LeaseState::kLost) return 0ns;
  return std::max<std::chrono::nanoseconds>(0ns, now.deadline - state_->driver->now());
}

std::chrono::nanoseconds Lease::deadline_boottime() const {
  return state_->status().deadline.time_since_epoch() - state_->driver->clock_offset();
}

std::stop_token Lease::lost() const {
  if (state_->status().state < LeaseState::kUncertain) return state_->holder->lost.get_token();
  // The callback thread may not have run yet; the caller need not wait for it.
  std::stop_source over;
  over.request_stop();
  return over.get_token();
}

void Lease::progress() const {
  if (!state_->driver->forked()) state_->driver->progress(state_->lease.number);
}

void Lease::on_release_wanted(std::function<void(const ReleaseWanted&)> callback) const {
  if (!state_->driver->forked())
    state_->driver->on_release_wanted(state_->lease.number, std::move(callback));
}

Error Lease::stale(std::uint64_t max) const {
  const Error plain{Code::kStaleToken,
                    "a newer holder has been here: its token was " + std::to_string(max)};
  if (state_->driver->forked()) return plain;
  client::PendingResult<wire::Value> result(state_->driver->wakeups(), client::this_thread());
  state_->driver->command({.words = {"STATUS"}, .give_up = state_->driver->now() + kStatusWait},
                          [&result](Result<wire::Value> status) { result.set(std::move(status)); });
  const Result<wire::Value> status = result.wait();
  const wire::Value* last = status ? status->find("last_token") : nullptr;
  if (last == nullptr || static_cast<std::uint64_t>(last->as_integer().value_or(0)) >= max)
    return plain;
  return {Code::kIssuerBehind,
          "a guard has seen token " + std::to_string(max) + ", and pawld has granted none above " +
              std::to_string(last->as_integer().value_or(0)) +
              ": its store went back in time. Stop everything that uses it; then: pawl raise " +
              std::to_string(max) + " --reason …"};
}

Result<void> Lease::release(std::chrono::milliseconds wait_at_most) {
  if (state_->driver->forked()) return Error{Code::kLeaseLost, state_->status().reason};
  client::PendingResult<client::ReleaseResult> result(state_->driver->wakeups(),
                                                      client::this_thread());
  const auto after =
      state_->driver->release(state_->lease.number, client::bounded(wait_at_most),
                              [&result](auto released) { result.set(std::move(released)); });
  if (after == client::Driver::AfterRelease::kForgotten) state_->forgotten = true;
  const Result<client::ReleaseResult> released = result.wait();
  if (!released) return released.error();
  if (released->was_live) return {};
  const bool known = after != client::Driver::AfterRelease::kForgotten;
  return Error{Code::kLeaseLost,
               "it was over before: " +
                   (known ? state_->status().reason : "pawld did not know it any more")};
}

}  // namespace pawl
