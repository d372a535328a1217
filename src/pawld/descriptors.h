// File descriptors: how many connections pawld may have within the limit of its process.
//
//   const ConnectionLimits limits = connection_limits(allow_descriptors(needed), uses);
//
// The store, the log and pawld itself need descriptors at any time: a store that cannot create a
// file ends the process. So they are never given to connections: all limits of connections
// together leave kDescriptorsKept.
#pragma once

#include <cstddef>

#include "base/limits.h"
#include "base/log.h"

namespace pawl::pawld {

// For the store (journal, checkpoint, backup), the event loops, the listeners, the log, files that
// are read on SIGHUP, and a connection that is just accepted.
inline constexpr std::size_t kDescriptorsKept = 48;

// Which connections there are at all.
struct Uses {
  bool users = false;
  bool tls = false;
  bool http = false;
};

struct ConnectionLimits {
  std::size_t ordinary = limits::kConnectionsMax;
  std::size_t reserved = limits::kConnectionsReserved;
  std::size_t newcomers = limits::kNewcomersMax;
  std::size_t handshakes = limits::kHandshakesMax;
  std::size_t http = limits::kHttpConnectionsMax;
  std::size_t http_reserved = limits::kHttpConnectionsReserved;
  std::size_t http_newcomers = limits::kHttpNewcomersMax;

  // The descriptors that these connections take.
  [[nodiscard]] std::size_t descriptors(const Uses& uses) const;
  bool operator==(const ConnectionLimits&) const = default;
};

// The limits for that many descriptors of connections: the fixed ones if they are enough, otherwise
// each in proportion, and never less than a few.
[[nodiscard]] ConnectionLimits connection_limits(std::size_t descriptors, const Uses& uses);

// Raises the limit of this process as far as needed and possible, and returns the limits of
// connections that fit. Warns if they are less than the fixed ones.
[[nodiscard]] ConnectionLimits fit_to_descriptor_limit(const Uses& uses, Log& log);

}  // namespace pawl::pawld
