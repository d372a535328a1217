// What happened in a drill. The verdict, the JSON output and the HTML report are made from it.
//
// Plain data, filled while the drill runs. All times are on one clock, the boot clock of this
// machine, counted from the beginning of the drill. So what one process believed can be compared
// with what pawld knew.
//
// The JSON output has its own, older names for some members: `actor` (worker), `whom`
// (Fault::target), `because` (reasons), `knew_late_ms` (noticed_late), `lines` and `who` (log and
// source).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::drill {

using Moment = std::chrono::nanoseconds;  // since the drill began

// From the grant until pawld counted the lease as over: nobody else can hold the lock in between.
struct Ownership {
  std::string worker;
  std::uint64_t token = 0;
  Moment from{};
  std::optional<Moment> until = {};  // nothing: still held when the drill ended
  std::string ending = {};           // released, expired, broken, …
  // A token that was certainly granted earlier: known before this grant was requested, or reported
  // by pawld before it. The moments above do not show the order of grants, because each process
  // learns of a grant at its own pace.
  std::uint64_t token_before = 0;
};

// From the moment a client learned that it holds the lock until it learned that it does not. A
// frozen worker learns late, which is why guards exist.
struct Belief {
  std::string worker;
  std::uint64_t token = 0;
  Moment from{};
  std::optional<Moment> until = {};  // nothing: it still believed so when the drill ended
};

// What became of a write.
enum class Fate : std::uint8_t {
  kAdmitted,    // In effect, rightly: its token was the newest.
  kRefused,     // Refused by the guard: nothing happened.
  kLetThrough,  // Stale, but in effect. A guard must not allow that.
  kWithheld,    // Not sent: the client checked its lease first.
  kUnknown,     // No result arrived, and the resource does not show it.
};

struct Write {
  std::string worker;
  std::uint64_t token = 0;
  bool stale = false;  // A greater token had been granted when it was sent.
  Moment sent{};
  Moment answered{};  // zero: no result yet
  Fate fate = Fate::kUnknown;
  std::string value;
  std::string detail = {};  // the guard's message
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
  std::string target;  // a worker's name, or "pawld"
  Moment from{};
  std::optional<Moment> until = {};
  std::string note = {};
};

// One line for people, such as: 2.095 s  B  is granted the lock, token 43.
struct LogEntry {
  Moment at{};
  std::string source;  // a worker's name, or "pawld"
  std::string text;
};

// What a drill does not cover, and the command that closes the gap.
struct Note {
  std::string text;  // a sentence that ends with a colon
  std::string command;
};

struct DrillVerdict {
  std::uint64_t writes = 0;  // without those that were withheld
  std::uint64_t stale_sent = 0;
  std::uint64_t refused = 0;      // of the stale ones
  std::uint64_t let_through = 0;  // of the stale ones
  std::uint64_t unknown = 0;
  // The longest time for which a client still believed that it held the lock after another client
  // had been granted it. Not positive: every client noticed its loss before that. Nothing: the lock
  // did not change hands.
  std::optional<Moment> noticed_late = {};
  bool passed = false;
  std::vector<std::string> reasons = {};  // sentences: why it passed or failed
  std::vector<Note> notes = {};
};

struct DrillRecord {
  std::string drill;    // pause, partition, …
  std::string purpose;  // what it is about, in sentences
  std::string lock;
  std::string guard;        // the kind's name: postgres
  std::string guard_title;  // for sentences: PostgreSQL
  std::string resource;
  std::string mode;                        // enforce, shadow, observe, canary, none
  std::optional<bool> require_token = {};  // of the user's own guard; nothing: a scratch resource
  std::string guard_options = {};          // that name the database to `pawl guard`: --file shop.db
  bool scratch = true;                     // made for the drill and removed after it
  std::string pawld;                       // its address, or "throw-away"
  std::string version;
  std::string began;  // wall clock, ISO 8601
  Moment length{};
  std::chrono::milliseconds ttl{};
  std::vector<Ownership> ownerships;
  std::vector<Belief> beliefs;
  std::vector<Write> writes;
  std::vector<Fault> faults;
  std::vector<LogEntry> log;
  DrillVerdict verdict;
};

// "1 write", "2 writes".
[[nodiscard]] inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace pawl::drill
