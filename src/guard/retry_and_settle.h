// One guarded write, tried until its outcome is known: again while it may pass, and settled when an
// attempt ended without an answer. How one attempt is made, and how an unknown one is settled, the
// derived class says: TransactionWriter does it in SQL transactions; a guard without transactions
// and without operation numbers settles by reading back what it wrote.
//
//   attempt ──▶ decision: done                              error: over
//      ▲ ├────▶ may pass again: pause ──────────────────────▶ attempt
//      │ └────▶ unknown: settle, until the holder's time or the limit is over
//      │            ├─▶ applied: done
//      └────────────┴─▶ not applied, or a repetition would find out
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "pawl/guard.h"
#include "pawl/lease.h"

namespace pawl::guard {

// The token of a write, and what is known of its holder.
struct HeldToken {
  std::uint64_t token = 0;
  // Whether the holder may still act; its error ends the write. Empty: only the token is known.
  std::function<Result<void>()> check = {};
  // The error for a token that a guard calls stale although check() was good: kIssuerBehind where
  // pawld's counter is behind the guard. Empty: kStaleToken it is.
  std::function<Error(std::uint64_t fence)> explain_stale = {};
};
// The lease must outlive it.
[[nodiscard]] HeldToken held_by(const Lease& lease);

// When to give up on attempts that may pass again.
struct RetryLimits {
  int retries = 0;
  std::optional<std::chrono::steady_clock::time_point> until = {};  // instead of `retries`
  std::chrono::milliseconds pause_max{100};
  // An unknown outcome is not settled any longer then. Nothing: while the holder may act.
  std::optional<std::chrono::steady_clock::time_point> settle_until = {};
};

class RetryAndSettle {
 public:
  RetryAndSettle(HeldToken held, RetryLimits limits);
  virtual ~RetryAndSettle() = default;
  RetryAndSettle(const RetryAndSettle&) = delete;
  RetryAndSettle& operator=(const RetryAndSettle&) = delete;

  Result<Decision> run();

 protected:
  struct Again {  // It may pass the next time; `error` is returned when the limits are reached.
    Error error;
  };
  struct Unknown {  // It was sent, and there was no answer.
    Error error;
  };
  using Attempt = std::variant<Decision, Again, Unknown, Error>;

  enum class Settled : std::uint8_t {
    kApplied,     // It is in effect.
    kNotApplied,  // It is not, and cannot take effect any more.
    kRepeat,      // A repetition finds out: it is answered `replayed` if it is in effect.
    kNotYet,      // Cannot be said now; asked again after a pause.
    kCannotTell,  // Can never be said.
  };

  // One try. The holder was checked just before.
  virtual Attempt attempt() = 0;
  // After an Unknown, one try.
  virtual Settled settle() = 0;
  // Advice for people after kCannotTell.
  [[nodiscard]] virtual std::string_view cannot_tell() const = 0;

  [[nodiscard]] std::uint64_t token() const { return held_.token; }
  // For the derived class to ask in the middle of an attempt.
  [[nodiscard]] Result<void> check_held() const;
  // What a refusal as stale means for this holder.
  [[nodiscard]] Error explain_stale(const Error& stale, std::uint64_t fence) const;
  // An earlier attempt has an unknown outcome: `replayed` then means that it took effect.
  [[nodiscard]] bool unsettled() const { return unsettled_; }
  // For an error that says that nothing happened: kUnknown while an earlier attempt is unsettled.
  [[nodiscard]] Error unless_unsettled(Error error) const;

 private:
  // Until the outcome is known, or the holder's time is over. The error when it stays unknown.
  std::variant<Settled, Error> settle_in_time(const Error& unknown);
  [[nodiscard]] bool may_retry(int tries) const;

  const HeldToken held_;
  const RetryLimits limits_;
  bool unsettled_ = false;
};

}  // namespace pawl::guard
