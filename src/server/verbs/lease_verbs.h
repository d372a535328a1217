// ACQUIRE, CANCEL, RENEW, MRENEW and RELEASE: to take locks, and to keep and end leases.
#pragma once

#include "server/verbs/verb.h"

namespace pawl::server {

extern const Verb kAcquire;
extern const Verb kCancel;
extern const Verb kRenew;
extern const Verb kMRenew;
extern const Verb kRelease;

// What MRENEW asks for: 1 to limits::kRenewsPerCall leases, in the caller's order, each checked.
struct MRenewRequest {
  std::span<const std::string_view> leases;
  bool asks = false;  // answer with the numbers of asks to let go
};
[[nodiscard]] MRenewRequest parse_mrenew(wire::ArgReader& in);

}  // namespace pawl::server
