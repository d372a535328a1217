// One call at a time on the caller's thread, for programs that do one thing at a time, such as the
// CLI. A PollConnection with its loop inside.
//
//   SystemRandom random;
//   BlockingConnection pawld(*parse_addresses("127.0.0.1:7295"), random, {});
//   auto granted = pawld.acquire({.locks = {"hello"}, .wait = 30s});
//   if (!granted) return report(granted.error());
//
// Looks up names and connects in the first call, and connects again when the connection is lost. A
// call's `give_up`, when not set, is `call_timeout` from now, plus the wait of an acquire.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/address.h"
#include "client/calls.h"
#include "client/poll_connection.h"

namespace pawl::client {

struct ConnectionOptions {
  MachineOptions machine;
  Millis connect_timeout{3'000};                 // per address
  Millis call_timeout{10'000};                   // how long a call may take beyond its own wait
  std::function<void(std::uint64_t)> on_queued;  // the position in the queue, when it changes
  // The connection was lost, or could not be made again, during a call. For messages.
  std::function<void(const std::string&)> on_connection_error;
};

class BlockingConnection {
 public:
  BlockingConnection(std::vector<Address> addresses, Random& random, ConnectionOptions options);
  // Finishes releases that are still in the background, for a second at most.
  ~BlockingConnection();
  BlockingConnection(const BlockingConnection&) = delete;
  BlockingConnection& operator=(const BlockingConnection&) = delete;

  // Whether a pawld has ever answered: distinguishes "unreachable" from "refused".
  [[nodiscard]] bool reached() const { return pawld_ && pawld_->machine().reached(); }
  // See PollConnection.
  [[nodiscard]] bool is_tls_mismatch() const { return pawld_ && pawld_->is_tls_mismatch(); }

  Result<GrantedLease> acquire(AcquireCall call);
  Result<RenewResult> renew(RenewCall call);
  Result<ReleaseResult> release(ReleaseCall call);
  Result<wire::Value> command(CommandCall call);

 private:
  // `start` makes the call on the machine and returns its id.
  template <class T>
  Result<T> call(const std::function<CallId(Machine&)>& start);
  [[nodiscard]] Result<void> resolve_once();
  [[nodiscard]] Instant limit(Instant give_up, Millis wait) const;
  void report(CallId call);

  const std::vector<Address> addresses_;
  const ConnectionOptions options_;
  Random& random_;
  std::optional<PollConnection> pawld_;  // once the addresses are resolved
  std::uint64_t position_ = 0;           // as last reported
  std::string error_;                    // as last reported
};

}  // namespace pawl::client
