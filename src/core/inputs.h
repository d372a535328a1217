// The inputs of the core. Views are valid only for the call.
#pragma once

#include <string_view>

#include "base/lease_terms.h"
#include "base/types.h"
#include "core/accounts.h"

namespace pawl::core {

// `waiter` is where the reply goes: a number made by the server. The core knows no connection.

// Asks for locks, all or none, at once or in turn.
struct Acquire {
  WaiterId waiter;
  // Within limits.h: the core asserts it, the wire explains it. spec.request is scoped by the
  // server.
  AcquireSpec spec;
  // The lease's id if this is granted, now or inside the release of another lease.
  LeaseId candidate;
  // Whose limits it counts against.
  AccountId account = 0;
  // The one who asks has hung up since. Its retry reads the outcome of a request id, but neither
  // takes over nor ends a wait: that belongs to a newer connection.
  bool hung_up = false;
};

// Extends a live lease by its TTL.
struct Renew {
  WaiterId waiter;
  LeaseId lease;
  AccountId account = 0;  // A lease that was loaded counts as this user's from now on.
};

// Ends a live lease. One that is over stays over: the next holder is not touched (G5).
struct Release {
  WaiterId waiter;
  LeaseId lease;
};

// The waiter is gone (a hang-up): forget its wait. No reply; nothing happens when it was not
// waiting.
struct Cancel {
  WaiterId waiter;
};

// The verb CANCEL: ends the wait of a request id, whichever waiter owns it.
struct CancelRequest {
  WaiterId waiter;
  std::string_view request;
};

// Refuses further renewals of the lease that holds `lock` with `token`.
struct Break {
  WaiterId waiter;
  std::string_view lock;
  Token token;
  bool now = false;  // Hand on at once; only guards protect then.
  std::string_view reason;
};

// Asks the holders of `lock` to let go. They hear of it with their next renewals; nothing is stored.
struct Ask {
  WaiterId waiter;
  std::string_view lock;
  std::string_view by;      // Who asks, for people.
  std::string_view reason;  // May be empty.
  AccountId account = 0;    // Whose limits it counts against.
};

// Moves the counter of tokens forward, to `token`.
struct Raise {
  WaiterId waiter;
  Token token;
  std::string_view reason;
};

}  // namespace pawl::core
