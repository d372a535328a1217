// An election: of all candidates for a name, one leads at a time.
//
//   pawl::Election election(client, "elections/scheduler");
//   auto leadership = election.campaign("10.0.0.7:8080", {.ttl = 10s});      // waits until elected
//   if (!leadership) return report(leadership.error());
//   std::stop_callback stop(leadership->lost(), [&] { cancel_work(); });
//   lead(leadership->token());  // send the token with every write
//   auto resigned = election.resign(*std::move(leadership));  // kLeaseLost: it was lost before
//
// Leadership is a lease: it is renewed in the background, and an uncertain leader must stop before
// anyone else can be elected. As with any lease, only a resource that compares tokens can refuse a
// former leader that has not noticed yet.
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

// The leader, as others see it.
struct Leader {
  std::uint64_t token = 0;  // grows with every leader
  std::string owner;        // a label for people
  // The value of its campaign, such as an address; never changes. Empty: none was given. nullopt,
  // only in observe(): the leadership ended before the value could be read.
  std::optional<std::string> value;

  bool operator==(const Leader&) const = default;
};

struct CampaignOptions {
  std::chrono::milliseconds ttl{15'000};
  // How long to wait to be elected. nullopt: for ever, also while pawld cannot be reached.
  std::optional<std::chrono::milliseconds> wait = {};
  std::string owner = {};                 // for people; empty: host:pid
  std::chrono::milliseconds max_hold{0};  // as in AcquireOptions, and the next two also
  std::chrono::milliseconds progress_every{0};
  std::function<void(LeaseState, const std::string& reason)> on_change = {};
};

// Observes until it is destroyed. Has one owner.
class PAWL_PUBLIC LeaderObservation {
 public:
  LeaderObservation(LeaderObservation&&) noexcept;
  LeaderObservation& operator=(LeaderObservation&&) noexcept;
  // No callback begins after this. Waits, for one second at most, for one that runs, unless this is
  // called from within it.
  ~LeaderObservation();

 private:
  friend class Election;
  struct State;
  explicit LeaderObservation(std::unique_ptr<State> state);
  void end() noexcept;
  std::unique_ptr<State> state_;  // Empty once moved from.
};

// A name and a client, which must outlive it. All members may be called from any thread. The
// election is the lock of that name: `pawl show` shows it, and every client that acquires the lock
// takes part, such as `pawl elect`.
class PAWL_PUBLIC Election {
 public:
  Election(Client& client, std::string name);

  // Waits until elected, in order of arrival. `value` is what leader() and observe() show to
  // others, at most about a kilobyte. kBusy: another candidate led until the wait was over.
  // kUnavailable: `stop` was requested, or pawld was not reached in time. kInvalid and kDenied: at
  // once.
  [[nodiscard]] Result<Lease> campaign(std::string_view value, CampaignOptions options = {},
                                       std::stop_token stop = {});
  // Stops leading, so that the next candidate leads at once. The same as Lease::release();
  // destroying the lease does it too.
  Result<void> resign(Lease leadership,
                      std::chrono::milliseconds wait_at_most = std::chrono::seconds(5));

  // The leader according to pawld; nullopt: none. It may have changed when this returns.
  [[nodiscard]] Result<std::optional<Leader>> leader();

  // Calls `callback` with the current leader, or none, and then with each change, in order, on the
  // client's callback thread; it must not throw. The end of a leader is one change, to none, and
  // its successor another. Continues over lost connections and restarts of pawld: changes that
  // happened meanwhile are reported as far as pawld still knows them (a restart forgets them), and
  // the leader after that in any case. An error is the last call: pawld refuses the observation. A
  // client that cannot be used at all makes that call before this returns.
  using Callback = std::function<void(const Result<std::optional<Leader>>&)>;
  [[nodiscard]] LeaderObservation observe(Callback callback);

 private:
  Client& client_;
  const std::string name_;
};

}  // namespace pawl
