// An election: of all who campaign for a name, one leads at a time.
//
//   pawl::Election election(client, "elections/scheduler");
//   auto leadership = election.campaign("10.0.0.7:8080", {.ttl = 10s});      // waits until elected
//   if (!leadership) return report(leadership.error());
//   std::stop_callback stop(leadership->lost(), [&] { cancel_work(); });     // before anyone else can be elected
//   …lead: send leadership->token() along with every write…
//   election.resign(*std::move(leadership));
//
// Leadership is a lease: it is renewed in the background, and a leader that is not sure any more
// has stopped leading. As with any lease, only a resource that compares tokens can refuse one that
// does not know yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "pawl/client.h"
#include "pawl/lease.h"
#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl {

// Who leads, as others see it.
struct Leader {
  std::uint64_t token = 0;  // grows with every leader
  std::string owner;        // a label for people
  // What it campaigned with, an address for instance; never changes. Empty when it gave none;
  // nothing when it was over before it could be asked for, which only observe() tells.
  std::optional<std::string> value;

  bool operator==(const Leader&) const = default;
};

struct CampaignOptions {
  std::chrono::milliseconds ttl{15'000};
  // How long to wait for being elected. Nothing: for ever, also while pawld cannot be reached.
  std::optional<std::chrono::milliseconds> wait = {};
  std::string owner = {};                 // for people; empty: host:pid
  std::chrono::milliseconds max_hold{0};  // as in AcquireOptions, and the next two also
  std::chrono::milliseconds progress_every{0};
  std::function<void(LeaseState, const std::string& reason)> on_change = {};
};

// Observes until it is destroyed. Belongs to one owner.
class PAWL_PUBLIC LeaderObservation {
 public:
  LeaderObservation(LeaderObservation&&) noexcept;
  LeaderObservation& operator=(LeaderObservation&&) noexcept;
  // No call begins after this. Waits, a second at most, for one that runs; not when called from
  // within it.
  ~LeaderObservation();

 private:
  friend class Election;
  struct State;
  explicit LeaderObservation(std::unique_ptr<State> state);
  void end() noexcept;
  std::unique_ptr<State> state_;  // Empty once moved from.
};

// A name and a client, which must outlive it; holds nothing itself. All members may be called from
// any thread. The election is the lock of that name: `pawl show` shows it, `pawl elect` and anyone
// who takes the lock takes part.
class PAWL_PUBLIC Election {
 public:
  Election(Client& client, std::string name);

  // Waits until elected, in order of arrival. kBusy: someone else led until the wait was over.
  // kUnavailable: `stop` was requested, or pawld was not reached in time. kInvalid, kDenied: at
  // once. `value` is what leader() and observe() show to others, at most about a kilobyte.
  [[nodiscard]] Result<Lease> campaign(std::string_view value, CampaignOptions options = {},
                                       std::stop_token stop = {});
  // Stops leading, so that the next can at once. As Lease::release(), which is what it does; to let
  // go of the lease does it too.
  Result<bool> resign(Lease leadership,
                      std::chrono::milliseconds wait_at_most = std::chrono::seconds(5));

  // Who leads now, as pawld says: nothing when nobody does. By the time you read it, it may be
  // someone else.
  [[nodiscard]] Result<std::optional<Leader>> leader();

  // Calls `told` with who leads now, nobody included, and then with each change, in order, on the
  // client's callback thread; it must not throw. The end of a leader is a change, to nobody, and
  // its successor another. Goes on over lost connections and restarts of pawld: what happened
  // meanwhile is told as far as pawld still knows it (it forgets when it restarts), and who leads
  // then in any case. An error is the last call, and says why observing has ended: pawld refuses
  // it. A client that cannot be used at all makes that call before this returns.
  using Told = std::function<void(const Result<std::optional<Leader>>&)>;
  [[nodiscard]] LeaderObservation observe(Told told);

 private:
  Client& client_;
  const std::string name_;
};

}  // namespace pawl
