// What can be asked of a client::Machine, and what it answers.
//
// Every call has `give_up`: when the caller stops waiting. What it may conclude then is in the
// error's code: kUnavailable when it cannot have happened (never sent, or answered "not now" each
// time), kUnknown otherwise.
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

// A lease that is good until `deadline`, on the client's clock. Not obtained is Code::kBusy.
struct Held : Granted {
  Instant deadline{};
  std::string request = {};
};

struct RenewCall {
  LeaseId lease;
  Millis ttl{0};  // of the lease; 0 when the caller does not know it: what pawld answers stands in
  Instant give_up = kNever;
};
struct Renewal {
  Millis expires_in{0};  // as answered
  Instant deadline;
};

// Several leases with one command; 1 to limits::kRenewsPerCall of them.
struct RenewManyCall {
  std::vector<LeaseId> leases = {};
  Instant give_up = kNever;
};
struct Renewals {
  Instant sent;  // of the command that was answered: what a deadline counts from
  std::vector<std::optional<Millis>> answered =
      {};  // in the order of the call; nothing: that lease is over
};

struct ReleaseCall {
  LeaseId lease;
  Millis ttl{
      // Of the lease. Release goes on in the background until confirmed or this has passed; 0 =
      // unknown.
      0};
  Instant give_up = kNever;
};
struct Release {
  bool was_live = false;  // false: it was already over
};

// Any other command, as its words.
struct CommandCall {
  // Whether sending it again after a lost connection is harmless. If not, a lost reply is reported
  // as kUnknown.
  enum class Repeat : std::uint8_t { kHarmless, kForbidden };
  std::vector<std::string> words = {};
  Repeat repeat = Repeat::kHarmless;
  Instant give_up = kNever;
};

// The events of all locks whose names begin with `prefix`. Lasts until it is cancelled, over any
// number of connections, or until pawld refuses it; it has no `give_up`. What it tells are
// Sightings.
struct ObserveCall {
  std::string prefix = {};
  std::optional<wire::EventId> from = {};  // from after that event; nothing: from now
};
struct Unobserved {};  // as asked

// What an observation tells, in order: nothing, once, when it has begun (what is asked for after
// that, INSPECT for instance, leaves no gap); then each event. kReset: some may have been missed,
// look again. It may concern another observation of the same machine; to look once too often is
// harmless.
struct Sighting {
  CallId call;
  std::optional<wire::EventPush> event = {};
  std::uint64_t order = 0;  // among completions and events
};

using Outcome = std::variant<Result<Held>, Result<Renewal>, Result<Renewals>, Result<Release>,
                             Result<Unobserved>, Result<wire::Value>>;

struct Completion {
  CallId call;
  Outcome outcome;
  // Its place among completions and events of this machine: what came later has a greater one.
  std::uint64_t order = 0;
};

}  // namespace pawl::client
