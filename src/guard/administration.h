// What operators do with an installed guard, whatever it is installed in: `pawl guard …` is a thin
// face of this.
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
};

// A thing that weakens a guard, and what mends it.
struct Problem {
  std::string severity;  // error: writes pass unguarded; warning: they might
  std::string guard;
  std::string object;
  std::string problem;
  std::string fix;
};

// Who still writes without a token.
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
  std::string kind;  // static, keyed, row, expression
  std::vector<std::string> tables;
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
  std::string table;
  std::string guard = {};       // empty: named like the table
  std::string key = {};         // the row with this key is the resource
  std::string expression = {};  // rows that share its value are
  std::string mode = "observe";
};

// Whether to do it, or to do it and take it back: everything is checked, nothing changes.
enum class Rehearse : std::uint8_t { kNo, kYes };

// Older transactions that are still open when the wait of an advance is over.
enum class Stragglers : std::uint8_t { kSpare, kEvict };

class Administration {
 public:
  virtual ~Administration() = default;

  // Nothing: there is none.
  virtual Result<std::optional<Installation>> installed() = 0;
  // Also upgrades, in place; refuses to go back. What is there afterwards.
  virtual Result<Installation> install(Rehearse rehearse) = 0;
  virtual Result<void> uninstall(Rehearse rehearse) = 0;
  // The SQL (or whatever it is) that install() runs, for those who install by other means.
  [[nodiscard]] virtual std::string_view script() const = 0;

  // The guard's name.
  virtual Result<std::string> protect(const Protection& protection, Rehearse rehearse) = 0;
  virtual Result<void> unprotect(const std::string& table, Rehearse rehearse) = 0;

  virtual Result<std::vector<Problem>> problems() = 0;
  virtual Result<std::vector<Status>> status(const std::string& guard) = 0;  // empty: all
  virtual Result<std::vector<Sighting>> sightings(const std::string& guard) = 0;

  virtual Result<void> set_mode(const ModeChange& change, Rehearse rehearse) = 0;
  virtual Result<void> set_policy(const PolicyChange& change, Rehearse rehearse) = 0;
  // Back to shadow, at once; every guard when `guard` is empty.
  virtual Result<void> emergency(const std::string& guard, const std::string& reason) = 0;

  // Nothing: none yet.
  virtual Result<std::optional<std::uint64_t>> fence(const std::string& resource) = 0;
  virtual Result<std::vector<std::string>> blockers(const std::string& resource) = 0;
  // As Guard::advance().
  virtual Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                        std::chrono::milliseconds wait, Stragglers stragglers) = 0;
  // Forgets what is below `below`, by raising a floor for all of the guard.
  virtual Result<void> compact(const std::string& guard, std::uint64_t below,
                               Rehearse rehearse) = 0;
};

}  // namespace pawl::guard
