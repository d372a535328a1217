// What the core shows when asked: copies for people and programs, never its own structures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/types.h"
#include "core/outputs.h"

namespace pawl::core {

struct HolderView {
  Token token;
  std::string owner;
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;
  std::optional<std::uint32_t> slot;
  std::vector<std::string> locks;  // all of the lease's, this one included
  Millis held{0};                  // by the wall clock, for people
  Millis expires_in{0};
  std::uint32_t renewals = 0;
  bool breaking = false;
  std::vector<std::pair<std::string, std::string>> meta;
};

struct WaiterView {
  std::string owner;
  Mode mode = Mode::kExclusive;
  Millis waited{0};
};

// Which holders to show: the first `count` whose token is greater than `after`.
struct HoldersPage {
  std::size_t count = limits::kHoldersShown;
  Token after;
};

enum class LockState : std::uint8_t { kFree, kHeld, kClosed };
[[nodiscard]] std::string_view to_text(LockState state);

struct LockView {
  std::string lock;
  LockState state = LockState::kFree;
  std::optional<Token> token;       // the greatest live one
  std::uint64_t holder_count = 0;   // live ones
  std::vector<HolderView> holders;  // a page of them, in order of grant
  std::uint64_t waiters = 0;
  std::vector<WaiterView> queue;     // the first 16
  std::optional<Token> last_token;   // empty when forgotten
  std::optional<Millis> reopens_in;  // while closed
};

// An ask to let go, as a holder of the lock sees it.
struct AskView {
  std::uint64_t number = 0;  // greater than that of any ask before
  std::string lock;
  std::string by;      // who asks, for people
  std::string reason;  // may be empty
};

// Which names to show.
using NameFilter = std::function<bool(std::string_view)>;

// A page of what is held, closed or waited for. `cursor` 0 = the end; an empty page with a cursor
// is normal.
struct LocksPage {
  std::uint64_t cursor = 0;
  std::vector<LockView> locks;
};

struct EpochView {
  Token token;
  std::string owner;
  std::vector<std::string> locks;
  Mode mode = Mode::kExclusive;
  UnixMs granted;
  UnixMs ended;
  Ending how = Ending::kReleased;
};

struct Totals {
  Token last_token;
  std::optional<Token> oldest_live_token;
  std::uint64_t locks = 0;   // held, closed or waited for
  std::uint64_t closed = 0;  // of them, for a DELAY
  std::uint64_t leases = 0;  // live ones
  std::uint64_t waiters = 0;
};

}  // namespace pawl::core
