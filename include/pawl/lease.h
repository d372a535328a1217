// A lease: the result of a grant, renewed in the background until it is released.
//
//   std::stop_callback stop(lease.lost(), [&] { cancel_work(); });
//   while (work_left()) {
//     if (auto still = lease.check(); !still) return report(still.error());
//     write_with(lease.token());            // a guarded resource refuses older tokens
//   }
//   if (auto released = lease.release(); !released) return report(released.error());
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl {

// Has one owner; its const members may be called from any thread, also while release() runs. Every
// answer is computed from the clock at the call, so that a process that was frozen (SIGSTOP,
// suspend) gets the right one on its first call. After fork() the child's copy is lost.
class PAWL_PUBLIC Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  // Releases, and waits for the answer for one second at most; after that it continues in the
  // background. While pawld does not answer, all leases of a client together wait one second. No
  // on_change or on_release_wanted begins after this; one that runs is waited for, for one second at
  // most, unless this is called from within it. In a child of fork() it does nothing.
  ~Lease();

  // The fencing token: send it with every write. Grows with every grant of any lock.
  [[nodiscard]] std::uint64_t token() const;
  // With Sharing::kShared the smallest live token of the lock, which readers check with; otherwise
  // token().
  [[nodiscard]] std::uint64_t floor() const;
  // With Sharing::kLimit the slot of this lease; each slot is a separate resource.
  [[nodiscard]] std::optional<std::uint32_t> slot() const;
  [[nodiscard]] const std::vector<std::string>& locks() const;
  [[nodiscard]] std::chrono::milliseconds ttl() const;
  // The secret handle for RENEW and RELEASE. Do not log it: it is enough to end the lease.
  [[nodiscard]] std::string secret() const;

  [[nodiscard]] LeaseState state() const;
  // Why it is not kHeld, for messages; empty when it is.
  [[nodiscard]] std::string reason() const;
  // Call before a risky step. Success while kHeld or kAtRisk, else Code::kLeaseLost with the
  // reason.
  [[nodiscard]] Result<void> check() const;
  // Until the deadline; zero once it has passed.
  [[nodiscard]] std::chrono::nanoseconds remaining() const;
  // The deadline as a reading of CLOCK_BOOTTIME.
  [[nodiscard]] std::chrono::nanoseconds deadline_boottime() const;
  // Stop is requested when the lease becomes uncertain or lost, before pawld can grant the lock to
  // anyone else. Its callbacks run on a thread that does nothing else, so that it fires whatever
  // other callbacks do, those of other lost leases included (up to 64 at once). For a lease that is
  // over, stop was requested already. release() does not request it.
  [[nodiscard]] std::stop_token lost() const;
  // Reports that the work progresses; see AcquireOptions::progress_every.
  void progress() const;

  // Calls back when somebody asks for one of the locks (`pawl ask`, ASK), so that the holder can
  // finish early and release; nothing else happens. It is heard with the next renewal, which is sent
  // every third of the TTL, and each ask once; of several between two renewals the newest. If one
  // came before this call, the newest is reported at once. On the client's callback thread, until
  // the lease is destroyed, as AcquireOptions::on_change. Must not throw. Replaces the callback of an
  // earlier call, and waits for that if it runs, as the destructor does; an empty one ends it.
  void on_release_wanted(std::function<void(const ReleaseWanted&)> callback) const;

  // The error for a guard that refused this lease's token as stale because of a greater one, `max`.
  // Asks pawld: kIssuerBehind when pawld never granted a token that great, because its store was
  // set back; else kStaleToken.
  [[nodiscard]] Error stale(std::uint64_t max) const;

  // Ends the lease. Success: pawld ended it now, so it was held until now. Errors:
  //   kLeaseLost              it was over before: lost, or released
  //   kUnknown, kUnavailable  not confirmed within `wait_at_most`; it is repeated in the background
  //                           until it is confirmed or the TTL has passed
  Result<void> release(std::chrono::milliseconds wait_at_most = std::chrono::seconds(5));

 private:
  friend class Client;
  struct State;
  explicit Lease(std::unique_ptr<State> state);
  void let_go() noexcept;
  std::unique_ptr<State> state_;  // Empty once moved from.
};

}  // namespace pawl
