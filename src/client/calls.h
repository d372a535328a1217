// The calls of client::Machine and their results.
//
// Every call has `give_up`: when the caller stops waiting. The error's code says what the caller
// may conclude then: kUnavailable when the call cannot have taken effect (never sent, or answered
// "not now" each time), kUnknown otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/lease_terms.h"
#include "base/types.h"
#include "client/time.h"
#include "pawl/result.h"
#include "wire/events.h"
#include "wire/replies.h"
#include "wire/value.h"

namespace pawl::client {

using CallId = Number<struct CallTag>;

struct AcquireCall {
  std::vector<std::string> locks = {};
  LeaseTerms terms = {};
  Millis wait{0};  // 0 = do not wait
  std::string owner = {};
  std::string request = {};  // empty: the machine makes one. As secret as the lease.
  std::vector<std::pair<std::string, std::string>> meta = {};
  Instant give_up = kNever;
};

// A lease that is valid until `deadline` on the client's clock. A lock that was not obtained is
// Code::kBusy.
struct GrantedLease : Granted {
  Instant deadline{};
  std::string request = {};
};

struct RenewCall {
  LeaseId lease;
  Millis ttl{0};  // of the lease; 0 = not known, then the time that pawld answers is used
  Instant give_up = kNever;
  bool asks = false;  // Fetch also what somebody has asked of the holder.
};
struct RenewResult {
  Millis expires_in{0};  // as answered by pawld
  Instant deadline;
  std::optional<wire::ReleaseWanted> release_wanted = {};  // Only if RenewCall::asks.
};

// Renews 1 to limits::kRenewsPerCall leases with one command.
struct RenewManyCall {
  std::vector<LeaseId> leases = {};
  Instant give_up = kNever;
};
struct RenewManyResult {
  Instant sent;  // when the answered command was sent: deadlines count from this
  std::vector<wire::RenewedItem> answered = {};  // for each lease, in the order of the call
};

struct ReleaseCall {
  LeaseId lease;
  // Of the lease; 0 = not known. RELEASE is repeated in the background until it is confirmed or
  // this time has passed.
  Millis ttl{0};
  Instant give_up = kNever;
};
struct ReleaseResult {
  bool was_live = false;  // false: it was already over
};

// Any other command, as its words.
struct CommandCall {
  // Whether the command may be sent again after a lost connection. If not, a lost reply is reported
  // as kUnknown.
  enum class Repeat : std::uint8_t { kHarmless, kForbidden };
  std::vector<std::string> words = {};
  Repeat repeat = Repeat::kHarmless;
  Instant give_up = kNever;
};

// Observes the events of all locks whose names start with `prefix`; see ObservedEvent. Lasts until
// it is cancelled or pawld refuses it, over any number of connections. It has no `give_up`.
struct ObserveCall {
  std::string prefix = {};
  std::optional<wire::EventId> from = {};  // events after this one; nullopt: from now on
};
struct ObserveEnded {};  // cancelled by the caller

// What an observation reports, in order: once without an event when it has begun (a command that is
// sent after that, such as INSPECT, leaves no gap), then each event. kReset means that events may
// have been missed: read the state again. A reset may concern another observation of the same
// machine only; reading once too often is harmless.
struct ObservedEvent {
  CallId call;
  std::optional<wire::EventPush> event = {};
  std::uint64_t order = 0;  // among completions and events
};

using Outcome = std::variant<Result<GrantedLease>, Result<RenewResult>, Result<RenewManyResult>,
                             Result<ReleaseResult>, Result<ObserveEnded>, Result<wire::Value>>;

struct Completion {
  CallId call;
  Outcome outcome;
  // Among completions and events of this machine: what came later has a greater number.
  std::uint64_t order = 0;
};

}  // namespace pawl::client
