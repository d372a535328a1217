// One call on its way: which command to send next, and what its reply means. The machine owns one
// flow per call; it knows the connection and nothing about the calls.
//
//   state      what happens next
//   kReady     the machine calls write(); then kSent
//   kSent      on_value() with the reply, in order; or on_disconnect()
//   kParked    on_push() or on_disconnect(): the flow waits for something that is not a reply
//   kPaused    wake() once the pause is over; then kReady
//   kFinished  nothing; the machine deletes the flow
//
// A call completes once, possibly before its flow is finished: a grant that nobody waits for any
// more still has to be released. A completed flow continues in the background until
// `linger_until` at the latest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "client/calls.h"
#include "client/time.h"
#include "wire/error_code.h"
#include "wire/replies.h"
#include "wire/value.h"

namespace pawl::client {

class Flow {
 public:
  enum class State : std::uint8_t { kReady, kSent, kParked, kPaused, kFinished };

  explicit Flow(Instant give_up) : give_up_(give_up) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // --- Inputs from the machine -------------------------------------------------------------------
  // Appends the next command to `out`. Only when kReady.
  void write(std::string& out, Instant now) {
    PAWL_ASSERT(state_ == State::kReady);
    state_ = State::kSent;
    happened_before_ = std::exchange(may_have_happened_, true);
    append(out, now);
  }
  // The reply to the command that was written last. Only when kSent.
  void on_value(const wire::Value& value, Instant now);
  // An ASYNC wait has ended. Ignored unless this flow waits for it.
  virtual void on_push(const wire::WaitPush&, Instant) {}
  // The connection is gone, and with it every pending reply.
  void on_disconnect(Instant now) {
    if (state_ == State::kSent || state_ == State::kParked) return resume_after_disconnect(now);
    // "Later" was about that connection; when to try the next one is the machine's decision.
    if (state_ == State::kPaused) completed_ ? resume_after_disconnect(now) : ready();
  }
  // The clock has moved: ends a pause that is over.
  void wake(Instant now);
  // `give_up` has passed: the call completes without an answer. `connection_error` is the last
  // error of the connection, for the detail.
  virtual void abandon(Instant now, std::string_view connection_error);
  // `linger_until` has passed.
  void stop() { finish(); }
  // The caller withdraws the call.
  virtual void cancel(Instant now) { abandon(now, "cancelled"); }
  // The server refuses this client altogether: the call completes with `error`, or with kUnknown if
  // an earlier send may have taken effect.
  void refuse(Error error);

  // --- State, for the machine --------------------------------------------------------------------
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool finished() const { return state_ == State::kFinished; }
  [[nodiscard]] bool completed() const { return completed_; }
  // False when nothing was sent, or every send was answered with "not now, nothing happened".
  [[nodiscard]] bool may_have_happened() const { return may_have_happened_; }
  // When wake(), abandon() or stop() is due.
  [[nodiscard]] Instant next_timer() const;
  [[nodiscard]] bool caller_timed_out(Instant now) const { return !completed_ && now >= give_up_; }
  [[nodiscard]] bool linger_expired(Instant now) const {
    return completed_ && now >= linger_until_;
  }
  // The slot in the machine's TimerQueue.
  [[nodiscard]] Instant& timer_slot() { return timer_slot_; }
  // The result for the caller, once.
  [[nodiscard]] std::optional<Outcome> take_outcome() {
    return std::exchange(outcome_, std::nullopt);
  }
  // Why the connection is of no use for this flow, once: the reply that only meant "later".
  [[nodiscard]] std::optional<std::string> take_hang_up() {
    return std::exchange(hang_up_, false) ? std::optional(retry_later_reply_) : std::nullopt;
  }
  // The request id by which pushes refer to this call; nullptr for calls without one.
  [[nodiscard]] virtual const std::string* request() const { return nullptr; }
  // Among flows that are written together the smallest goes first, equal ones in order of call.
  static constexpr std::size_t kAnyOrder = SIZE_MAX;
  [[nodiscard]] virtual std::size_t send_order() const { return kAnyOrder; }
  // The position in the queue, while the call waits for a lock.
  [[nodiscard]] virtual std::optional<std::uint64_t> position() const { return std::nullopt; }

 protected:
  virtual void append(std::string& out, Instant now) = 0;
  // A reply other than those that only mean "later" (LOADING, UNCERTAIN, READONLY).
  virtual void on_reply(const wire::Value& value, Instant now) = 0;
  // Default: the last command is sent again.
  virtual void resume_after_disconnect(Instant) { state_ = State::kReady; }
  // Whether the command may be sent again after UNCERTAIN ("the store did not confirm").
  [[nodiscard]] virtual bool repeatable() const { return true; }
  // Whether to hang up after "later" and to ask again on the next connection, together with all
  // others. After READONLY that is always so: it has to be another pawld.
  [[nodiscard]] virtual bool hangs_up_when_put_off() const { return false; }
  // `error` as an outcome of this call's type.
  [[nodiscard]] virtual Outcome failure(Error error) const = 0;

  void ready() { state_ = State::kReady; }
  void park() { state_ = State::kParked; }
  void finish() { state_ = State::kFinished; }
  void complete(Outcome outcome) {
    if (completed_) return;
    completed_ = true;
    outcome_ = std::move(outcome);
  }
  void finish_with(Outcome outcome) {
    complete(std::move(outcome));
    finish();
  }
  // Why there is no answer: the error of the connection, or else pawld's last "not now".
  [[nodiscard]] std::string failure_reason(std::string_view connection_error) const;
  void linger(Instant until) { linger_until_ = until; }

 private:
  Instant give_up_;
  Instant linger_until_ = kNever;
  Instant wake_at_ = kNever;  // when kPaused
  Instant timer_slot_ = kNever;
  State state_ = State::kReady;
  bool may_have_happened_ = false;
  bool happened_before_ = false;  // the same, before the newest send
  bool completed_ = false;
  bool hang_up_ = false;
  std::optional<Outcome> outcome_;
  std::string retry_later_reply_;  // the last reply that only meant "later"
};

// The code of an error reply; nullopt for other replies and unknown codes.
[[nodiscard]] std::optional<wire::ErrorCode> error_code(const wire::Value& value);

}  // namespace pawl::client
