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
  // Of the user's statement: how many rows it changed. Nothing: there is none, or it is not known.
  std::optional<std::uint64_t> rows = {};
};

// How a program gives its token to the guard.
enum class Way : std::uint8_t {
  kCall,     // It asks first, and gets the verdict before it writes.
  kCarried,  // It does not ask: the token is there when the write is judged.
  kNone,     // It has none.
};

// What became of a stale write that was sent in one of these ways, and rolled back.
enum class WayFate : std::uint8_t {
  kRefused,
  kLanded,  // Without the rollback it would be in effect.
  kNotApplicable,
  kUnknown,  // Neither: the write failed for another reason.
};

struct TriedWay {
  Way way = Way::kCall;
  std::string words;  // for people: "pawl.use()", "SET LOCAL pawl.token.orders", "no token"
  WayFate fate = WayFate::kUnknown;
  std::string detail = {};  // the guard's message, or why it does not apply
};

// What the guard itself reports (guard::Problem).
struct GuardProblem {
  bool error = false;  // Writes pass unguarded; else they might.
  bool whole = false;  // It concerns everything there, not this guard alone.
  std::string object;
  std::string problem;
  std::string fix;
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

// A sentence of the verdict, and what to do about it.
struct Note {
  std::string text;          // ends with a colon when there is a command
  std::string command = {};  // of a shell or of SQL
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
  std::vector<Note> reasons = {};  // why it passed or failed
  std::vector<Note> notes = {};    // what is weak, or was not tried, although it passed
};

struct DrillRecord {
  std::string drill;    // pause, partition, …
  std::string purpose;  // what it is about, in sentences
  std::string lock;
  std::string guard;        // the kind's name: postgres
  std::string guard_title;  // for sentences: PostgreSQL
  std::string resource;
  std::string mode;                        // enforce, shadow, observe, canary, none
  std::optional<bool> require_token = {};  // nothing: this kind of guard has no such policy
  std::string guard_options = {};          // that name the database to `pawl guard`: --file shop.db
  bool scratch = true;                     // made for the drill and removed after it
  std::string statement = {};              // of the user's own: --write
  std::vector<std::string> tables = {};    // of the user's own: what is under its guard
  std::string pawld;                       // its address, or "throw-away"
  std::string version;
  std::string began;  // wall clock, ISO 8601
  Moment length{};
  std::chrono::milliseconds ttl{};
  std::vector<Ownership> ownerships;
  std::vector<Belief> beliefs;
  std::vector<Write> writes;
  std::vector<TriedWay> ways;  // each way once; empty without a guard
  std::vector<GuardProblem> problems;
  std::string problems_unread = {};  // why they are not known
  std::vector<Fault> faults;
  std::vector<LogEntry> log;
  DrillVerdict verdict;
};

// As in the JSON output.
[[nodiscard]] constexpr std::string_view to_text(Way way) {
  constexpr std::string_view kWords[] = {"call", "carried", "none"};
  return kWords[static_cast<std::size_t>(way)];
}
[[nodiscard]] constexpr std::string_view to_text(WayFate fate) {
  constexpr std::string_view kWords[] = {"refused", "landed", "not_applicable", "unknown"};
  return kWords[static_cast<std::size_t>(fate)];
}

// "1 write", "2 writes".
[[nodiscard]] inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace pawl::drill
