// INSPECT, LOCKS, HISTORY and STATUS: questions, answered once the writes before them are durable.
#pragma once

#include "server/verbs/verb.h"

namespace pawl::server {

extern const Verb kInspect;
extern const Verb kLocks;
extern const Verb kHistory;
extern const Verb kStatus;

struct InspectRequest {
  std::string_view lock;
  core::HoldersPage holders;
};
[[nodiscard]] InspectRequest parse_inspect(wire::ArgReader& in);

struct LocksRequest {
  std::string_view prefix;  // empty: all
  // "0": from the start. Otherwise opaque: the cursor of an earlier page.
  std::string_view cursor = "0";
  std::size_t count = limits::kCountDefault;
};
[[nodiscard]] LocksRequest parse_locks(wire::ArgReader& in);

struct HistoryRequest {
  std::string_view lock;
  std::size_t count = limits::kCountDefault;
};
[[nodiscard]] HistoryRequest parse_history(wire::ArgReader& in);

}  // namespace pawl::server
