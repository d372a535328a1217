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
  // The newest ask to let go of one of its locks, see Core::ask_for(); 0: none.
  std::uint64_t ask = 0;
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
// What became of an ask.
struct AskDone {
  enum class State : std::uint8_t {
    kAsked,         // The holders hear of it with their next renewals.
    kAlreadyAsked,  // They were asked less than limits::kAskAgainAfter ago; that ask stands.
    kNotHeld,       // Nobody holds it, so nobody was asked.
  };
  State state = State::kNotHeld;
  std::uint32_t holders = 0;  // that were asked
  Token token;                // the greatest of theirs; 0 when there are none
};
[[nodiscard]] std::string_view to_text(AskDone::State state);  // asked, already_asked, not_held
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
    kAsksFull,        // As many locks are asked for as may be.
    kRestoring,       // Restored from a backup: nothing is granted yet. Waiting is possible.
  };
  Why why = Why::kConflict;
  Millis left = Millis(0);  // kRestoring: until grants begin.
  // Of the limits: how much there is, of how much; of one user, or in all.
  std::uint64_t use = 0, limit = 0;
  bool per_user = false;
};

using Outcome = std::variant<Granted, Queued, NotObtained, Renewed, Released, CancelDone, BreakDone,
                             AskDone, Raised, Lost, Refused>;

// One answer.
struct Reply {
  WaiterId waiter;
  Outcome outcome;
  BatchId after;  // To be sent only once this batch is durable; 0 = at once.
};

enum class EventKind : std::uint8_t {
  kGranted,
  kReleased,
  kExpired,
  kBreaking,
  kBroken,
  kRaised,
  kReleaseWanted,  // Changes nothing, and may belong to a batch that stays empty.
};
[[nodiscard]] std::string_view to_text(EventKind kind);

// One per lock and change. `lock`, `owner` and `reason` point into Output::text and live until the
// output is cleared. For kReleaseWanted, `owner` is who asks, and `token` the greatest that was
// asked.
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
