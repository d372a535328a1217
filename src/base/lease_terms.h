// What is agreed about a lease, from the caller's options to the record in the store and back.
//
//   LeaseTerms    what a lease is granted on. AcquireOptions and the command line fill it,
//                 AcquireCall and AcquireSpec carry it, the core keeps it with the lease and
//                 writes it to the record
//   AcquireSpec   one ACQUIRE: its terms, and what matters only until the grant
//   Granted       what a grant answers: made by the core, written by the server, read by the client
//
// A new option of ACQUIRE is a field here, a row in wire/acquire_options.cc, its place in the lease
// and its record (core/lease_table.h, core/records.h), and its meaning in the core.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/limits.h"
#include "base/short_list.h"
#include "base/types.h"

namespace pawl {

// Fixed at the grant, for as long as the lease lives. Numbers only: texts (owner, metadata) have
// other owners in other folders and travel beside it.
struct LeaseTerms {
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;  // 1 unless mode is kLimit.
  Millis ttl{15'000};       // The default of libpawl and the command line; the wire requires TTL.
  Millis delay{0};          // Keeps the lock closed after an end that was not a release.
  Millis max_hold{0};       // 0 = no cap.

  bool operator==(const LeaseTerms&) const = default;
};

// Names of the locks of one lease: distinct, in the caller's order.
using LockNames = ShortList<std::string_view, limits::kLocksPerLease>;

struct MetaPair {
  std::string_view key;
  std::string_view value;
  bool operator==(const MetaPair&) const = default;
};

// Parsed by wire, decided by core, written by client. Views point into the caller's bytes and are
// valid only for the call.
struct AcquireSpec {
  LockNames locks;
  LeaseTerms terms;
  Millis wait{0};  // 0 = do not wait.
  bool async = false;
  std::string_view owner;
  std::string_view request;  // Empty = none.
  ShortList<MetaPair, limits::kMetaPairs> meta;
};

struct Granted {
  LeaseId lease;
  Token token;
  Token floor;                        // What a reader may trust; equals token unless shared.
  std::optional<std::uint32_t> slot;  // With LIMIT only.
  Millis ttl{0};
  Millis waited{0};
  bool operator==(const Granted&) const = default;
};

}  // namespace pawl
