// Small values of the public interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__GNUC__)
#define PAWL_PUBLIC __attribute__((visibility("default")))
#else
#define PAWL_PUBLIC
#endif

namespace pawl {

// Credentials, as `pawl auth add` prints them: user:secret.
struct Auth {
  std::string user;  // empty: none are sent
  std::string secret;
};

// How sure the client is of a lease. kHeld and kAtRisk may alternate; from kUncertain on it only
// gets worse.
enum class LeaseState : std::uint8_t {
  kHeld,  // Renewed in time. Work.
  // Its renewal is overdue, less than half of the TTL is left. Still good; hurry, or stop at a safe
  // place.
  kAtRisk,
  // Less than a sixth of the TTL is left. Begin nothing new. lost() fires, and it is not renewed
  // any more.
  kUncertain,
  kLost,  // Over. Do not touch the resource.
};
[[nodiscard]] PAWL_PUBLIC std::string_view to_text(LeaseState state);

enum class Sharing : std::uint8_t {
  kExclusive,
  kShared,  // readers among themselves
  kLimit,   // up to `limit` holders, each in a slot of its own
};

class Guard;

// A resource whose guard is advanced to the new token before a lease is handed out.
struct GuardedResource {
  GuardedResource(Guard* by)
      : guard(by) {}  // NOLINT: implicit by design. The resource is named like the lock.
  GuardedResource(Guard* by, std::string name) : guard(by), resource(std::move(name)) {}

  Guard* guard;               // must live until acquire() returns; used on the calling thread
  std::string resource = {};  // empty: as the lock, or each of the locks
};

struct AcquireOptions {
  std::chrono::milliseconds ttl{15'000};
  std::chrono::milliseconds wait{0};  // 0: do not wait
  Sharing sharing = Sharing::kExclusive;
  std::uint32_t limit = 1;  // with kLimit
  // A thread that asks with a wait for a lock it took itself, by acquire() of the same client,
  // would wait for itself: refused at once (kInvalid, with the token) while that lease is held.
  // True: it handed the lease on, and whoever has it now will release it. Threads among themselves
  // always wait; reentry within one is pawl::RecursiveMutex.
  bool wait_for_own = false;
  std::string owner = {};  // for people; empty: host:pid
  // Keeps the lock closed for so long after this lease has expired: for resources that cannot check
  // tokens.
  std::chrono::milliseconds delay{0};
  // The lease ends after so much time, however well it is renewed. At least the TTL; 0: no cap.
  std::chrono::milliseconds max_hold{0};
  // Not zero: the work must call Lease::progress() at least this often, or it is not renewed any
  // more and ends a TTL later. A worker that is stuck must not hold for ever because a background
  // thread is well.
  std::chrono::milliseconds progress_every{0};
  std::map<std::string, std::string> meta = {};
  // Fence on grant: from the moment acquire() returns a lease the former holder cannot write to
  // these any more, even if the new one never does. Readers (kShared) advance to their floor. Not
  // with kLimit, and not with acquire_async().
  std::vector<GuardedResource> guards = {};
  // How long acquire() may wait for transactions of former holders that are still open. When it is
  // over: kBusy, with their names, and the lock is given back.
  std::chrono::milliseconds guard_wait{5'000};
  // Every change of state, with the reason; on the client's callback thread. Must not throw.
  std::function<void(LeaseState, const std::string& reason)> on_change = {};
};

}  // namespace pawl
