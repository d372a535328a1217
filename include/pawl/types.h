// Small values of the public interface.
#pragma once

#if __cplusplus < 202002L
#error "Pawl's headers need C++20 or later: compile with -std=c++20"
#endif

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

// The client's view of a lease. kHeld and kAtRisk may alternate; kUncertain leads only to kLost.
enum class LeaseState : std::uint8_t {
  kHeld,  // Renewed in time. Work.
  // Its renewal is overdue, less than half of the TTL is left. Still valid; finish soon, or stop at
  // a safe point.
  kAtRisk,
  // Less than a sixth of the TTL is left. Start nothing new. lost() requests a stop, and the lease
  // is not renewed any more.
  kUncertain,
  kLost,  // Over. Do not touch the resource.
};
[[nodiscard]] PAWL_PUBLIC std::string_view to_text(LeaseState state);

// Of a client, for ClientOptions::on_connection.
enum class ConnectionState : std::uint8_t {
  kConnected,  // pawld has accepted a connection, the first or another one.
  // There is no connection, or none could be made yet. It is tried again while something needs one;
  // leases are valid until their deadlines.
  kSuspended,
  kLost,  // Suspended for so long that every lease is lost.
};
[[nodiscard]] PAWL_PUBLIC std::string_view to_text(ConnectionState state);

// Somebody has asked for a lock that this program holds: see Lease::on_release_wanted().
struct ReleaseWanted {
  std::string lock;
  std::string by;      // who asks: the user, where pawld has users, and a label for people
  std::string reason;  // as they wrote it; may be empty
};

enum class Sharing : std::uint8_t {
  kExclusive,
  kShared,  // readers among themselves
  kLimit,   // up to `limit` holders, each in its own slot
};

class Guard;

// A resource whose guard is advanced to the new token before acquire() returns the lease.
struct GuardedResource {
  GuardedResource(Guard* by)
      : guard(by) {}  // NOLINT: implicit by design. The resource has the name of the lock.
  GuardedResource(Guard* by, std::string name) : guard(by), resource(std::move(name)) {}

  Guard* guard;               // must live until acquire() returns; used on the calling thread
  std::string resource = {};  // empty: as the lock, or each of the locks
};

struct AcquireOptions {
  std::chrono::milliseconds ttl{15'000};
  std::chrono::milliseconds wait{0};  // 0: do not wait; milliseconds::max(): for ever
  Sharing sharing = Sharing::kExclusive;
  std::uint32_t limit = 1;  // with kLimit; else another value is refused (kInvalid)
  // A thread that waits for a lock which it has acquired itself, by acquire() of the same client,
  // would wait for itself: this is refused at once (kInvalid, with the token) while that lease is
  // held. True: do not refuse, because another thread will release that lease. Different threads
  // always wait for each other; for reentry in one thread see pawl::RecursiveMutex.
  bool wait_for_own = false;
  std::string owner = {};  // for people; empty: host:pid
  // Keeps the lock closed this long after the lease has expired: for resources that cannot check
  // tokens.
  std::chrono::milliseconds delay{0};
  // The lease ends after this time even if it is renewed. At least the TTL; 0: no cap.
  std::chrono::milliseconds max_hold{0};
  // If not 0, the work must call Lease::progress() at least this often; otherwise the lease is not
  // renewed and ends a TTL later. So a stuck worker does not hold the lock for ever just because
  // the background thread still runs.
  std::chrono::milliseconds progress_every{0};
  std::map<std::string, std::string> meta = {};
  // Fence on grant: once acquire() returns a lease, former holders cannot write to these resources
  // any more, even if the new holder never does. Readers (kShared) advance to their floor. Not with
  // kLimit or acquire_async().
  std::vector<GuardedResource> guards = {};
  // How long acquire() waits for open transactions of former holders. After that: kBusy, with their
  // names, and the lease is released.
  std::chrono::milliseconds guard_wait{5'000};
  // Every change of state, with the reason; on the client's callback thread, until the lease is
  // destroyed. Must not throw.
  std::function<void(LeaseState, const std::string& reason)> on_change = {};
};

}  // namespace pawl
