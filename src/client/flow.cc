#include "client/flow.h"

#include <algorithm>

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

// pawld reads its data in seconds and a store answers in milliseconds: soon, but not in a tight loop.
constexpr Nanos kPause = 100ms;

}  // namespace

std::optional<wire::ErrorCode> error_code(const wire::Value& value) {
  if (!value.is_error()) return std::nullopt;
  const std::string_view line = value.text;
  return wire::error_code_from_text(line.substr(0, line.find(' ')));
}

void Flow::reply(const wire::Value& value, Instant now) {
  PAWL_ASSERT(state_ == State::kSent);
  const auto code = error_code(value);
  const bool nothing_happened = code == wire::ErrorCode::kLoading || code == wire::ErrorCode::kReadOnly;
  if (nothing_happened || (code == wire::ErrorCode::kUncertain && repeatable())) {
    state_ = State::kPaused;
    wake_at_ = now + kPause;
    elsewhere_ = code == wire::ErrorCode::kReadOnly;
    return;
  }
  on_reply(value, now);
}

void Flow::wake(Instant now) {
  if (state_ != State::kPaused || now < wake_at_) return;
  wake_at_ = kNever;
  ready();
}

void Flow::abandon(Instant, std::string_view trouble) {
  const std::string why = trouble.empty() ? "no answer in time" : std::string(trouble);
  finish_with(ever_sent_ ? failure({Code::kUnknown, why + "; it may have happened"})
                         : failure({Code::kUnavailable, why}));
}

void Flow::refuse(Error error) {
  if (ever_sent_) error.code = Code::kUnknown;
  finish_with(failure(std::move(error)));
}

Instant Flow::next_timer() const {
  const Instant limit = told_ ? linger_until_ : give_up_;
  return std::min(limit, state_ == State::kPaused ? wake_at_ : kNever);
}

}  // namespace pawl::client
