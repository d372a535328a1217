// A history: what clients, an operator and the guards saw, in true time. Data only; checker.h
// judges it. A simulated run fills one, and so can any harness whose parts share a clock.
//
// Every call has the moment it was made and the moment its answer came. An answer that never came
// is kOpen: the call may have taken effect at any time since, or never.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/world.h"

namespace pawl::sim {

inline constexpr Moment kOpen = Moment::max();

// One acquire: one request id, from its first send to what the client made of it.
struct Attempt {
  int client = 0;
  std::string request;  // Empty: without one, so retries are not checked.
  LeaseId lease;
  std::vector<std::string> locks;
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;
  Millis ttl{0};
  Millis delay{0};
  Millis max_hold{0};  // 0: no cap.
  std::string owner;
  std::string value;  // Of a campaign, for observers.
  Moment asked{};     // No later than the first send.
  Moment queued =
      kOpen;  // Learned that it is queued, on a connection that lasted until the answer; kOpen: no.
  Moment answered = kOpen;  // When the client was handed the lease.
  Moment ended = kOpen;     // When it stopped waiting without one.
  Token token;              // 0 unless granted.
  Token floor;
  std::optional<std::uint32_t> slot;
  Millis waited{0};
  // The client acts as holder from `answered` until here: its own deadline, moved by renewals, or
  // the moment it began to release (or died).
  Moment believed_until{};
  // Set when pawld answered "lost" while the client's own deadline had not passed.
  std::optional<std::string> lost_early;
};

// RENEW of a lease, answered. One that got no answer proves nothing and need not be here.
struct Renewal {
  Token token;
  Moment sent{};
  Moment returned = kOpen;
  bool ok = false;  // false: LOST
  Millis answered{0};
};

struct Release {
  Token token;
  Moment invoked{};
  Moment returned = kOpen;
  bool was_live = false;
};

struct Break {
  Token token;
  bool now = false;
  Moment invoked{};
  Moment returned = kOpen;
  bool was_live = false;
};

// INSPECT showed `token` as the greatest live one on `lock`.
struct Sighting {
  std::string lock;
  Token token;
  Moment invoked{};
  Moment returned = kOpen;
};

// The request id of an attempt asked with once more, on another connection and without waiting.
struct Replay {
  enum class Answer : std::uint8_t { kGranted, kNothing, kLost, kConflict };
  std::string request;
  bool altered = false;  // With another TTL: must be a conflict while the id is remembered.
  Moment invoked{};
  Moment returned = kOpen;
  Answer answer = Answer::kNothing;
  Token token;
};

// CANCEL of an attempt's wait, answered 1.
struct Withdrawal {
  std::string request;
  Moment invoked{};
  Moment returned = kOpen;
};

// RAISE, answered with the new last token.
struct Raise {
  Token token;
  Moment invoked{};
  Moment returned = kOpen;
};

// An observer of an election received the leader; token 0: none.
struct Leading {
  int observer = 0;  // One stream of events; a new observation is another one.
  std::string lock;
  Token token;
  std::string owner;
  std::optional<std::string> value;  // Nothing: not known.
  Moment at{};
};

// pawld stood still, or its clock did: time that it gives back to its holders.
struct Pause {
  Moment from{}, to{};
};

// What happened inside a guarded resource, in the order it happened there.
struct Effect {
  enum class Kind : std::uint8_t {
    kAdvance,
    kRead,   // By a writer that will build on what it saw.
    kCheck,  // By a reader; must not move the fence.
    kWrite,
    kDelete,
  };
  enum class Verdict : std::uint8_t { kAdmitted, kReplayed, kStale, kStaleOp, kAhead };
  std::string resource;
  Kind kind = Kind::kWrite;
  Token token;
  std::uint64_t op = 0;
  Verdict verdict = Verdict::kAdmitted;
  bool changed = false;  // The resource really changed, whatever the verdict says.
  Moment at{};
};

// pawld began to serve, and this is the last token it knows of.
struct Start {
  Moment at{};
  Token last_token;
  Millis restoring{0};  // It grants nothing for so long.
};

// The store was lost, and made anew from a backup: every lease with a token up to this one is void
// from here on.
struct Restore {
  Moment lost{};
  Token last_token;
};

// What may be asked of a run, by what was done to it.
enum class Demand : std::uint8_t {
  kAll,
  kClockFree,  // Clocks beyond ρ (hard case 30, wild): P3, G2 and G7 do not hold.
  // A damaged disk may have lost the last batch: only what tokens promise (P1, P2, P5, P6).
  kTokensOnly,
};

struct History {
  std::vector<Attempt> attempts;
  std::vector<Renewal> renewals;
  std::vector<Release> releases;
  std::vector<Break> breaks;
  std::vector<Sighting> sightings;
  std::vector<Replay> replays;
  std::vector<Withdrawal> withdrawals;
  std::vector<Raise> raises;
  std::vector<Leading> leaders;
  std::vector<Effect> effects;
  std::vector<Start> starts;
  std::vector<Restore> restores;
  std::vector<Pause> pauses;
  Demand demand = Demand::kAll;
  Moment calm = kOpen;  // From here on no faults (P7).
};

}  // namespace pawl::sim
