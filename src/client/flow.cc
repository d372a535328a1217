#include "client/flow.h"

#include <algorithm>

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

// pawld loads its data in seconds and its store answers in milliseconds: retry soon, but not in a
// tight loop.
constexpr Nanos kPause = 100ms;

}  // namespace

std::optional<wire::ErrorCode> error_code(const wire::Value& value) {
  if (!value.is_error()) return std::nullopt;
  const std::string_view line = value.text;
  return wire::error_code_from_text(line.substr(0, line.find(' ')));
}

void Flow::on_value(const wire::Value& value, Instant now) {
  PAWL_ASSERT(state_ == State::kSent);
  const auto code = error_code(value);
  const bool nothing_happened =
      code == wire::ErrorCode::kLoading || code == wire::ErrorCode::kReadOnly;
  if (nothing_happened || (code == wire::ErrorCode::kUncertain && repeatable())) {
    state_ = State::kPaused;
    wake_at_ = now + kPause;
    hang_up_ = code == wire::ErrorCode::kReadOnly || hangs_up_when_put_off();
    retry_later_reply_ = value.text;
    if (nothing_happened) may_have_happened_ = happened_before_;
    return;
  }
  on_reply(value, now);
}

void Flow::wake(Instant now) {
  if (state_ != State::kPaused || now < wake_at_) return;
  wake_at_ = kNever;
  ready();
}

std::string Flow::failure_reason(std::string_view connection_error) const {
  if (!connection_error.empty()) return std::string(connection_error);
  return retry_later_reply_.empty() ? "no answer in time" : retry_later_reply_;
}

void Flow::abandon(Instant, std::string_view connection_error) {
  const std::string why = failure_reason(connection_error);
  finish_with(may_have_happened_
                  ? failure({Code::kUnknown, why + "; the command may have taken effect"})
                  : failure({Code::kUnavailable, why}));
}

void Flow::refuse(Error error) {
  if (may_have_happened_) error.code = Code::kUnknown;
  finish_with(failure(std::move(error)));
}

Instant Flow::next_timer() const {
  const Instant limit = completed_ ? linger_until_ : give_up_;
  return std::min(limit, state_ == State::kPaused ? wake_at_ : kNever);
}

}  // namespace pawl::client
