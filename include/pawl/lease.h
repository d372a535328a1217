// A lease: what a grant gives, kept alive in the background until it is released.
//
//   std::stop_callback stop(lease.lost(), [&] { cancel_work(); });
//   while (work_left()) {
//     if (auto still = lease.check(); !still) return report(still.error());
//     write_with(lease.token());            // a resource that compares tokens refuses an older one
//   }
//   lease.release();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl {

// Belongs to one owner; its const members may be called from any thread, also while release() runs.
// Every answer is worked out from the clock when it is asked for, so a process that was frozen
// (SIGSTOP, suspend) finds out on its first call. After fork() the child's copy is lost.
class PAWL_PUBLIC Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  // Releases, and waits for the answer a second at most; the rest goes on in the background. In a
  // child of fork() it does nothing.
  ~Lease();

  // The fencing token: send it along with every write. Grows with every grant, whatever the lock.
  [[nodiscard]] std::uint64_t token() const;
  // With Sharing::kShared the smallest live token of the lock, which readers check with; otherwise
  // = token().
  [[nodiscard]] std::uint64_t floor() const;
  // With Sharing::kLimit: which of the places this is; each is a resource of its own.
  [[nodiscard]] std::optional<std::uint32_t> slot() const;
  [[nodiscard]] const std::vector<std::string>& locks() const;
  [[nodiscard]] std::chrono::milliseconds ttl() const;
  // The secret handle, as RENEW and RELEASE take it. Whoever knows it can do both: do not log it.
  [[nodiscard]] std::string secret() const;

  [[nodiscard]] LeaseState state() const;
  // Why it is not kHeld, for people; empty when it is.
  [[nodiscard]] std::string reason() const;
  // Before a risky step: fine while kHeld or kAtRisk, else Code::kLeaseLost with the reason.
  [[nodiscard]] Result<void> check() const;
  // Until the deadline; zero once it has passed.
  [[nodiscard]] std::chrono::nanoseconds remaining() const;
  // The deadline as a reading of CLOCK_BOOTTIME.
  [[nodiscard]] std::chrono::nanoseconds deadline_boottime() const;
  // Fires once, on loss and already on uncertainty, before the lock can pass to anyone else; its
  // callbacks run on the client's callback thread. Of a lease that is over it is stopped already.
  // release() does not fire it.
  [[nodiscard]] std::stop_token lost() const;
  // The work is getting on; see AcquireOptions::progress_every.
  void progress() const;

  // What to make of a guard that called this lease's token stale because of a greater one, `max`.
  // Asks pawld: kIssuerBehind when it never granted one as great, which means that its disk went
  // back in time; else kStaleToken.
  [[nodiscard]] Error stale(std::uint64_t max) const;

  // Gives it back. True: pawld freed it now; false: it was over already, or has been released
  // before. kUnknown, kUnavailable: not confirmed in that time; trying goes on in the background
  // until it is, or until the TTL is over and the lock free all the same.
  Result<bool> release(std::chrono::milliseconds wait_at_most = std::chrono::seconds(5));

 private:
  friend class Client;
  struct State;
  explicit Lease(std::unique_ptr<State> state);
  void let_go() noexcept;
  std::unique_ptr<State> state_;  // Empty once moved from.
};

}  // namespace pawl
