// Leases: one grant each, found by its secret id, kept in order of token.
//
// Memory of one held lock (one lease, one lock, a 24-byte name, a 16-byte owner, no request id), in
// bytes:
//   Lease 112 + owner 32 + id index ~17 + Lock 40 + name 48 + name index ~17 = ~266
// `make bench` measures the whole process: 279 with a million held, the rings of history and events
// included. (The index figures are for a million items: 8 bytes a slot, and tables double.) A
// request id adds its Extra and its entry in requests.h, about 200 bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/lease_terms.h"
#include "base/limits.h"
#include "base/types.h"
#include "core/accounts.h"
#include "core/hash_index.h"
#include "core/slab.h"
#include "core/text.h"
#include "core/timer_wheel.h"

namespace pawl::core {

enum class Phase : std::uint8_t {
  kUnused = 0,
  kLive = 1,
  kBreaking = 2,  // Live, but not to be renewed.
  kClosed = 3,    // Over, and still keeping its place for its DELAY.
};

// What few leases have.
struct Extra {
  // Whether a lease on these terms needs one. So does a lease with several locks, a request id or
  // metadata.
  [[nodiscard]] static bool needed_for(const LeaseTerms& terms) {
    return terms.mode == Mode::kShared || terms.delay > Millis(0) || terms.max_hold > Millis(0);
  }

  std::vector<Index> locks;  // All of them, when there are several; else empty.
  Index request = kNone;
  Millis delay{0};
  Millis max_hold{0};
  Tick hold_until = kNever;  // Where max_hold ends it; kNever without, or before it is durable.
  Token floor;               // Of a shared lease; else its token.
  std::uint32_t bytes = 0;   // As counted in Accounts.
  std::string meta;          // As in the record.
};

struct Lease {
  LeaseId id;
  Token token;
  Tick ends = kNever;  // kNever until its grant is durable. While closed: when its locks reopen.
  UnixMs granted;
  Text owner;
  std::unique_ptr<Extra> extra;
  TimerLink timer;
  std::uint32_t ttl_ms = 0;
  std::uint32_t waited_ms = 0;
  std::uint32_t renewals = 0;
  Index lock = kNone;  // The first one.
  // Among the holders of `lock`. Unused with several locks, which are held exclusively.
  Index holder_before = kNone, holder_after = kNone;
  Index older = kNone, younger = kNone;  // Among live leases, by token.
  std::uint16_t limit = 1;
  std::uint16_t slot = 0;
  AccountId account = 0;
  Mode mode = Mode::kExclusive;
  Phase phase = Phase::kUnused;

  [[nodiscard]] bool live() const { return phase == Phase::kLive || phase == Phase::kBreaking; }
  [[nodiscard]] Millis ttl() const { return Millis(ttl_ms); }

  // The terms it was granted on are kept in its fields and in `extra`, which must exist where
  // Extra::needed_for() them. These two are the only place that knows which are kept where.
  void set_terms(const LeaseTerms& terms) {
    mode = terms.mode;
    PAWL_ASSERT(terms.limit <= UINT16_MAX && terms.ttl <= limits::kTtlMaxCeiling);
    limit = static_cast<std::uint16_t>(terms.limit);
    ttl_ms = static_cast<std::uint32_t>(terms.ttl.count());
    if (extra == nullptr) return PAWL_ASSERT(!Extra::needed_for(terms));
    extra->delay = terms.delay;
    extra->max_hold = terms.max_hold;
  }
  [[nodiscard]] LeaseTerms terms() const {
    LeaseTerms terms{.mode = mode, .limit = limit, .ttl = ttl()};
    if (extra == nullptr) return terms;
    terms.delay = extra->delay;
    terms.max_hold = extra->max_hold;
    return terms;
  }
};
static_assert(sizeof(Lease) <= 112, "memory per held lock is a promise: see the top of this file");

class LeaseTable {
 public:
  // A new lease with this id, which no other that can be found has. Not linked.
  Index add(LeaseId id) {
    const Index index = items.add();
    items[index].id = id;
    by_id_.insert(id.low, index);  // Random already: its own hash.
    return index;
  }
  // kNone when there is none, or it is over.
  [[nodiscard]] Index find(LeaseId id) const {
    return by_id_.find(id.low, [&](Index i) { return items[i].id == id; });
  }

  // Live leases are linked in order of token, so that the oldest live token is known at once.
  void link_youngest(Index index) {
    Lease& lease = items[index];
    PAWL_ASSERT(lease.live() && lease.older == kNone && lease.younger == kNone);
    PAWL_ASSERT(youngest_ == kNone || items[youngest_].token < lease.token);
    lease.older = youngest_;
    (youngest_ == kNone ? oldest_ : items[youngest_].younger) = index;
    youngest_ = index;
    ++live_;
  }

  // It is over: it is not found any more. The item stays until it is removed.
  void unlink(Index index) {
    Lease& lease = items[index];
    PAWL_ASSERT(lease.live() && live_ > 0);
    by_id_.erase(lease.id.low, index);
    (lease.older == kNone ? oldest_ : items[lease.older].younger) = lease.younger;
    (lease.younger == kNone ? youngest_ : items[lease.younger].older) = lease.older;
    lease.older = lease.younger = kNone;
    --live_;
  }
  // For a lease loaded as closed, which was never linked.
  void forget_id(Index index) { by_id_.erase(items[index].id.low, index); }

  // Room for this many leases in the index.
  void reserve(std::size_t count) { by_id_.reserve(count); }
  // How many are linked.
  [[nodiscard]] std::size_t live() const { return live_; }
  // The linked lease with the smallest token; kNone when there is none.
  [[nodiscard]] Index oldest() const { return oldest_; }

  Slab<Lease> items;

 private:
  HashIndex by_id_;
  Index oldest_ = kNone;
  Index youngest_ = kNone;
  std::size_t live_ = 0;
};

}  // namespace pawl::core
