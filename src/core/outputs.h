// What the core answers: replies and events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/lease_terms.h"
#include "base/types.h"

namespace pawl::core {

// How a lease ended.
enum class Ending : std::uint8_t { kReleased = 1, kExpired = 2, kBroken = 3, kMaxHold = 4 };
[[nodiscard]] std::string_view to_text(Ending ending);  // released, expired, broken, max_hold

using pawl::Granted;
// It waits. Answered only to an async acquire, and not its last answer; a blocking one is answered
// when its wait ends.
struct Queued {
  std::uint64_t position = 0;  // 1 = next; on the lock where it stands furthest back.
};
// The acquire ended without a lease.
struct NotObtained {
  enum class Why : std::uint8_t { kBusy, kTimeout, kCancelled, kSuperseded };
  Why why = Why::kBusy;
};
// Renewed in memory.
struct Renewed {
  Millis left{0};    // Until it expires now.
  Millis before{0};  // Until it would have expired without.
};
struct Released {
  bool was_live = false;
};
struct CancelDone {
  bool was_waiting = false;
};
struct BreakDone {
  bool was_live = false;
};
struct Raised {
  Token last;
};
// The lease, or the lease this request id once got, is over. `ending` is empty when nothing is
// known of it.
struct Lost {
  std::optional<Ending> ending;
  Token token;  // 0 when unknown
};
// Nothing happened, and it will not unless something else changes.
struct Refused {
  enum class Why : std::uint8_t {
    kConflict,        // The request id was used with other locks, mode, limit or TTL.
    kWaitersFull,     // As many waiters as there may be.
    kLeasesFull,      // As many leases and waiters as there may be.
    kLeaseBytesFull,  // They take as much memory as they may.
    kExhausted,       // Tokens are used up.
    kRaiseBack,       // RAISE to a token that is not greater.
    kRaiseTooFar,     // RAISE further than limits::kRaiseMax, or past the last token.
    kRestoring,       // Restored from a backup: nothing is granted yet. Waiting is possible.
  };
  Why why = Why::kConflict;
  Millis left = Millis(0);  // kRestoring: until grants begin.
  // Of the limits: how much there is, of how much; of one user, or in all.
  std::uint64_t use = 0, limit = 0;
  bool per_user = false;
};

using Outcome = std::variant<Granted, Queued, NotObtained, Renewed, Released, CancelDone, BreakDone,
                             Raised, Lost, Refused>;

// One answer.
struct Reply {
  WaiterId waiter;
  Outcome outcome;
  BatchId after;  // To be sent only once this batch is durable; 0 = at once.
};

enum class EventKind : std::uint8_t { kGranted, kReleased, kExpired, kBreaking, kBroken, kRaised };
[[nodiscard]] std::string_view to_text(EventKind kind);

// One per lock and change. `lock`, `owner` and `reason` point into Output::text and live until the
// output is cleared.
struct Event {
  EventKind kind = EventKind::kGranted;
  BatchId after;
  Token token;
  Mode mode = Mode::kExclusive;
  UnixMs wall;
  std::optional<Ending> ending;  // For kReleased, kExpired and kBroken.
  Millis held{0};                // With an ending; by the wall clock, for people.
  std::uint32_t lock_at = 0, lock_size = 0;
  std::uint32_t owner_at = 0, owner_size = 0;
  std::uint32_t reason_at = 0, reason_size = 0;
};

// What one or more inputs caused. The caller takes what it wants and clears it; replies are in
// order of decision.
struct Output {
  std::vector<Reply> replies;
  std::vector<Event> events;
  std::string text;

  [[nodiscard]] std::string_view lock(const Event& e) const {
    return std::string_view(text).substr(e.lock_at, e.lock_size);
  }
  [[nodiscard]] std::string_view owner(const Event& e) const {
    return std::string_view(text).substr(e.owner_at, e.owner_size);
  }
  [[nodiscard]] std::string_view reason(const Event& e) const {
    return std::string_view(text).substr(e.reason_at, e.reason_size);
  }
  void clear() {
    replies.clear();
    events.clear();
    text.clear();
  }
};

}  // namespace pawl::core
