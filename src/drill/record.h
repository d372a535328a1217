// What happened in a drill: what its verdict, its JSON, its page and its picture are made from.
//
// Plain data, filled while the drill runs. Every moment is on one clock, the boot clock of this
// machine, counted from the beginning of the drill; so a picture can set what one process believed
// beside what pawld knew.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pawl::drill {

using Moment = std::chrono::nanoseconds;  // since the drill began

// From the grant until pawld counted it as over: nobody else can have the lock in between.
struct Ownership {
  std::string actor;
  std::uint64_t token = 0;
  Moment from{};
  std::optional<Moment> until = {};  // nothing: still held when the drill ended
  std::string ending = {};           // released, expired, broken, …
};

// From when the client was told that it holds the lock until it was told (or knew by itself) that
// it does not. A worker that was frozen is told late: this is why guards exist.
struct Belief {
  std::string actor;
  std::uint64_t token = 0;
  Moment from{};
  std::optional<Moment> until = {};
};

enum class Fate : std::uint8_t {
  kAdmitted,    // in effect, and rightly: no greater token had been seen
  kRefused,     // stale, and the guard said so: nothing happened
  kLetThrough,  // stale, and it is in effect: what a guard must not allow
  kWithheld,    // the client knew and did not send it
  kUnknown,     // no answer came, and the resource does not tell
};

struct Write {
  std::string actor;
  std::uint64_t token = 0;
  bool stale = false;  // a greater token had been granted when it was sent
  Moment sent{};
  Moment answered{};
  Fate fate = Fate::kUnknown;
  std::string value;
  std::string detail = {};  // what the resource said
};

enum class FaultKind : std::uint8_t {
  kFrozen,
  kCut,
  kKilled,
  kRestarted,
  kClockStepped,
  kRestored,
  kDelayed
};

struct Fault {
  FaultKind kind = FaultKind::kFrozen;
  std::string whom;  // an actor, or "pawld"
  Moment from{};
  std::optional<Moment> until = {};
  std::string note = {};
};

// One line of what happened, for people, in order.
struct Line {
  Moment at{};
  std::string who;
  std::string text;
};

struct Verdict {
  std::uint64_t writes = 0;
  std::uint64_t stale_sent = 0;
  std::uint64_t refused = 0;
  std::uint64_t let_through = 0;
  std::uint64_t unknown = 0;
  // The longest time for which a client still believed that it held the lock after another had been
  // granted it: how late it knew. Not positive: it always knew before.
  std::optional<Moment> knew_late = {};
  bool passed = false;
  std::vector<std::string> because = {};  // sentences; of a drill that failed, the reasons
};

struct Record {
  std::string drill;  // pause, partition, …
  std::string lock;
  std::string guard;        // the kind's name: postgres
  std::string guard_title;  // for sentences: PostgreSQL
  std::string resource;
  std::string mode;     // enforce, shadow, observe, canary, none
  bool scratch = true;  // made for the drill and removed after it
  std::string pawld;    // its address, or "throw-away"
  std::string version;
  std::string began;  // wall clock, ISO 8601, for people
  Moment length{};
  std::chrono::milliseconds ttl{};
  std::vector<Ownership> ownerships;
  std::vector<Belief> beliefs;
  std::vector<Write> writes;
  std::vector<Fault> faults;
  std::vector<Line> lines;
  Verdict verdict;
};

}  // namespace pawl::drill
