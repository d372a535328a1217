// The course of one call: which command to send next, and what its reply means. One flow per call,
// owned by the machine, which knows the connection and nothing of the calls.
//
//   kReady    -> the machine calls write(), the flow is kSent
//   kSent     -> reply() (in order), or cut() when the connection is lost
//   kParked   -> pushed() or cut(): waiting for something that is no reply
//   kPaused   -> waits until wake_at(), then is kReady again
//   kFinished -> nothing more to do; the machine forgets it
//
// The caller is told once, which may be before the flow is finished: a grant nobody waits for any
// more is still given back. From then on the flow works for itself, until `linger_until` at the
// latest.
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

  // --- The machine drives ------------------------------------------------------------------------
  // Appends the
  // next command. Only when kReady.
  void write(std::string& out, Instant now) {
    PAWL_ASSERT(state_ == State::kReady);
    state_ = State::kSent;
    happened_before_ = std::exchange(may_have_happened_, true);
    append(out, now);
  }
  // The reply to what was written. Only when kSent.
  void reply(const wire::Value& value, Instant now);
  // An ASYNC wait has ended. Ignored unless the flow is waiting for it.
  virtual void pushed(const wire::WaitPush&, Instant) {}
  // The connection is gone, and with it every answer that was still to come.
  void cut(Instant now) {
    if (state_ == State::kSent || state_ == State::kParked) on_cut(now);
  }
  void wake(Instant now);
  // Nobody waits for the answer any more. `trouble` is what the connection last suffered from, for
  // the detail.
  virtual void abandon(Instant now, std::string_view trouble);
  // Lingered long enough.
  void stop() { finish(); }
  // The caller does not want the answer any more.
  virtual void cancel(Instant now) { abandon(now, "cancelled"); }
  // pawld does not take us at all: the call ends with `error`, softened to kUnknown if it may have
  // happened earlier.
  void refuse(Error error);

  // --- The machine looks -------------------------------------------------------------------------
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool finished() const { return state_ == State::kFinished; }
  [[nodiscard]] bool told() const { return told_; }
  // Something was sent, and not everything sent was answered with "not now, nothing happened".
  [[nodiscard]] bool may_have_happened() const { return may_have_happened_; }
  // When wake() or abandon() is due.
  [[nodiscard]] Instant next_timer() const;
  [[nodiscard]] bool gives_up_at(Instant now) const { return !told_ && now >= give_up_; }
  [[nodiscard]] bool lingers_past(Instant now) const { return told_ && now >= linger_until_; }
  // The place in the machine's agenda.
  [[nodiscard]] Instant& planned() { return planned_; }
  // What to tell the caller, once.
  [[nodiscard]] std::optional<Outcome> take_outcome() {
    return std::exchange(outcome_, std::nullopt);
  }
  // Set when the reply says that another pawld must be asked (a standby).
  [[nodiscard]] bool wants_elsewhere() { return std::exchange(elsewhere_, false); }
  // The request id that pushes name it by; nullptr for calls without one.
  [[nodiscard]] virtual const std::string* request() const { return nullptr; }
  // Among those that are written together: the smaller goes first, equals in order of call.
  static constexpr std::size_t kAnyTime = SIZE_MAX;
  [[nodiscard]] virtual std::size_t turn() const { return kAnyTime; }
  // The place in the queue, when it waits for a lock.
  [[nodiscard]] virtual std::optional<std::uint64_t> position() const { return std::nullopt; }

 protected:
  virtual void append(std::string& out, Instant now) = 0;
  // A reply that is not one of those that only mean "later" (LOADING, UNCERTAIN, READONLY).
  virtual void on_reply(const wire::Value& value, Instant now) = 0;
  // Default: what was sent is sent again.
  virtual void on_cut(Instant) { state_ = State::kReady; }
  // Whether "the store did not confirm" may be answered by asking again.
  [[nodiscard]] virtual bool repeatable() const { return true; }
  // The call's own type of failure.
  [[nodiscard]] virtual Outcome failure(Error error) const = 0;

  void ready() { state_ = State::kReady; }
  void park() { state_ = State::kParked; }
  void finish() { state_ = State::kFinished; }
  void tell(Outcome outcome) {
    if (told_) return;
    told_ = true;
    outcome_ = std::move(outcome);
  }
  void finish_with(Outcome outcome) {
    tell(std::move(outcome));
    finish();
  }
  // Why there is no answer: the connection's trouble, or else what pawld itself said last.
  [[nodiscard]] std::string why_not(std::string_view trouble) const;
  void linger(Instant until) { linger_until_ = until; }

 private:
  Instant give_up_;
  Instant linger_until_ = kNever;
  Instant wake_at_ = kNever;  // when kPaused
  Instant planned_ = kNever;
  State state_ = State::kReady;
  bool may_have_happened_ = false;
  bool happened_before_ = false;  // the same, before the newest send
  bool told_ = false;
  bool elsewhere_ = false;
  std::optional<Outcome> outcome_;
  std::string not_now_;  // what pawld answered when it only meant "later"
};

// The code of an error reply; nothing for other replies and for unknown codes.
[[nodiscard]] std::optional<wire::ErrorCode> error_code(const wire::Value& value);

}  // namespace pawl::client
