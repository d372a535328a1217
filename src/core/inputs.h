// The core's alphabet, inward. Views are valid only for the call.
#pragma once

#include <string_view>

#include "base/lease_terms.h"
#include "base/types.h"

namespace pawl::core {

// Whoever expects a reply names it with a `waiter` the server made up; the core knows no
// connection.

struct Acquire {
  WaiterId waiter;
  // Within limits.h: the core asserts it, the wire explains it. spec.request is scoped by the
  // server.
  AcquireSpec spec;
  LeaseId candidate;  // The lease's id if this is granted, now or inside someone else's release.
};

struct Renew {
  WaiterId waiter;
  LeaseId lease;
};

struct Release {
  WaiterId waiter;
  LeaseId lease;
};

// The waiter is gone (a hang-up): forget its wait. No reply; nothing happens when it was not
// waiting.
struct Cancel {
  WaiterId waiter;
};

// The verb CANCEL: ends the wait of a request id, whoever owns it.
struct CancelRequest {
  WaiterId waiter;
  std::string_view request;
};

struct Break {
  WaiterId waiter;
  std::string_view lock;
  Token token;
  bool now = false;  // Hand on at once; only guards protect then.
  std::string_view reason;
};

struct Raise {
  WaiterId waiter;
  Token token;
  std::string_view reason;
};

}  // namespace pawl::core
