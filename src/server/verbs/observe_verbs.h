// OBSERVE and UNOBSERVE: what happens to locks, as it happens.
#pragma once

#include "server/verbs/verb.h"
#include "wire/events.h"

namespace pawl::server {

extern const Verb kObserve;
extern const Verb kUnobserve;

struct ObserveRequest {
  std::string_view prefix;            // empty: all
  std::optional<wire::EventId> from;  // the last event that was seen; nothing: from now on
};
[[nodiscard]] ObserveRequest parse_observe(wire::ArgReader& in);

}  // namespace pawl::server
