// What operators do with an installed guard, whatever it is installed in. `pawl guard …` calls
// this.
//
// Errors: kDenied names the right that is missing, kInvalid what is wrong with the request or the
// installation, kUnavailable that nothing happened, kUnknown that it may have.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

struct Installation {
  std::string version;
  int contract = 0;
  // What admits ordinary writes: PL/pgSQL, or C. Empty where there is no choice.
  std::string fast_path = {};
};

// A thing that weakens a guard, and what mends it.
struct Problem {
  std::string severity;  // error: writes pass unguarded; warning: they might
  std::string guard;
  std::string object;
  std::string problem;
  std::string fix;
};

// A writer that still writes without a token.
struct Sighting {
  std::string guard;
  std::string login;
  std::string role;
  std::string application;
  std::string statement;
  std::uint64_t count = 0;
  std::string last_seen;
};

struct Status {
  std::string guard;
  // How it is guarded: static (one fence), keyed (a fence per key, writers ask), row (a fence per
  // row), by (a fence per value of an expression).
  std::string kind;
  GuardStrength strength = {};
  std::vector<std::string> tables;  // or whatever stands under guard; empty: only writers ask
  std::string mode;
  std::optional<int> percent;  // canary
  bool require_token = false;
  std::string equal;
  std::uint64_t max_step = 0;
  std::optional<std::uint64_t> fence;
  std::uint64_t floor = 0;
  std::uint64_t replayed = 0;
  std::uint64_t stale = 0;
  std::uint64_t missing = 0;
  std::uint64_t ahead = 0;
  std::uint64_t malformed = 0;
  std::uint64_t would_refuse = 0;
  bool ready = false;                // to enforce
  std::vector<std::string> because;  // why not yet
};

struct ModeChange {
  std::string guard;
  std::string mode;  // as it is spelled; the guard itself judges
  std::optional<int> percent = {};
  std::string reason = {};
};

struct PolicyChange {
  std::string guard;
  std::optional<bool> require_token = {};
  std::optional<std::string> equal = {};
  std::optional<std::uint64_t> max_step = {};
  std::optional<std::string> bare_token = {};
  std::string reason = {};
};

struct Protection {
  std::string table;       // or whatever this kind puts under guard: a key prefix, a path
  std::string guard = {};  // empty: named like the table
  std::string key = {};    // the row with this key is the resource
  std::string by = {};     // rows with the same value of this expression are one resource
  std::string mode = "observe";
};

// kYes: everything is checked, nothing changes.
enum class Rehearse : std::uint8_t { kNo, kYes };

// Older transactions that are still open when the wait of an advance is over.
enum class Stragglers : std::uint8_t { kSpare, kEvict };

// What an administration may be unable to do, because its resource has no such thing.
enum class Task : std::uint8_t {
  kScript,     // print what install() runs
  kRehearse,   // Rehearse::kYes
  kProtect,    // put things under guard, and take them out
  kSightings,  // tell which writers come without a token
  kModes,      // set_mode
  kPolicies,   // set_policy
  kEmergency,
  kBlockers,  // name the writes that an advance would wait for
  kEvict,     // Stragglers::kEvict
  kCompact,
  kContent,  // write and read whole contents: put, get
  kCollect,
};
inline constexpr std::size_t kTaskCount = 12;

// Every administration tells what is installed, its status and fences, and advances. The rest is
// optional: the default of such a call fails with kInvalid, and can() says beforehand.
class Administration {
 public:
  virtual ~Administration() = default;

  // For sentences: PostgreSQL.
  [[nodiscard]] virtual std::string_view title() const = 0;
  [[nodiscard]] virtual bool can(Task task) const = 0;

  // Nothing: there is none.
  virtual Result<std::optional<Installation>> installed() = 0;
  // Also upgrades, in place; refuses to go back. What is there afterwards. A kind that has nothing
  // to install probes here whether the resource can be guarded at all.
  virtual Result<Installation> install(Rehearse rehearse) = 0;
  virtual Result<void> uninstall(Rehearse rehearse) = 0;

  virtual Result<std::vector<Problem>> problems() = 0;
  virtual Result<std::vector<Status>> status(const std::string& guard) = 0;  // empty: all

  // Nothing: none yet.
  virtual Result<std::optional<std::uint64_t>> fence(const std::string& resource) = 0;
  // As Guard::advance(). kEvict only with Task::kEvict.
  virtual Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                        std::chrono::milliseconds wait, Stragglers stragglers) = 0;

  // --- Optional ----------------------------------------------------------------------------------

  // What install() runs, for those who install by other means.
  [[nodiscard]] virtual Result<std::string_view> script() const;

  // The guard's name.
  virtual Result<std::string> protect(const Protection& protection, Rehearse rehearse);
  // What keeps others from writing around a guard, for an administrator of the resource to do by
  // other means. Empty: nothing is left to do.
  virtual Result<std::string> access_advice(const std::string& guard);
  virtual Result<void> unprotect(const std::string& table, Rehearse rehearse);
  // Forgets a guard with its fences, policies and counters. kInvalid: something stands under it.
  virtual Result<void> drop(const std::string& guard, Rehearse rehearse);

  virtual Result<std::vector<Sighting>> sightings(const std::string& guard);

  virtual Result<void> set_mode(const ModeChange& change, Rehearse rehearse);
  virtual Result<void> set_policy(const PolicyChange& change, Rehearse rehearse);
  // Back to shadow, at once; every guard when `guard` is empty.
  virtual Result<void> emergency(const std::string& guard, const std::string& reason);

  virtual Result<std::vector<std::string>> blockers(const std::string& resource);
  // Forgets what is below `below`, by raising a floor for all of the guard.
  virtual Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse);

  // Where a resource has a content that is written and read as a whole. The content of a resource
  // that has none is nothing.
  virtual Result<Decision> put(const std::string& resource, std::uint64_t token,
                               std::uint64_t operation, const std::string& content);
  virtual Result<std::optional<std::string>> get(const std::string& resource);
  // Removes what writers that were refused or cut off have left behind, and returns its names; of
  // every guard when `guard` is empty.
  virtual Result<std::vector<std::string>> collect(const std::string& guard, Rehearse rehearse);

 protected:
  // "PostgreSQL: a guard here cannot …".
  [[nodiscard]] Error unable(Task task) const;
};

// Where a problem of severity error lets writes pass unguarded, a guard is best effort, whatever
// its kind promises. So it is where the problems could not be read.
void weaken_by_problems(Status& status, const Result<std::vector<Problem>>& problems);

}  // namespace pawl::guard
