// The contract of every guard: the check *inside* a resource that refuses an old token.
//
// A guard remembers, for each resource, its fence: the greatest token it has admitted or was
// advanced to. In one atomic step with the write itself it compares the writer's token with it:
//
//   token < fence   stale      a newer holder has been here; refused for ever, never retried
//   token = fence   admitted   the holder writes again (policy `equal` may say once, or refuse)
//   token > fence   admitted   and the fence rises; every later write with a lower token is stale
//
// No clock takes part (guarantee G8). How a write is admitted belongs to the resource:
// pawl/postgres.h runs it in the user's own transaction. What all guards have in common is here:
// verdicts, modes, advance() and check().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl {

// The version of this contract. What is installed in a resource says which it keeps; the two must
// be equal.
inline constexpr int kGuardContract = 1;

// The same five everywhere: in C++, in SQL, in logs and in metrics.
enum class Verdict : std::uint8_t {
  kAdmitted,  // The token is as great as the fence, or greater.
  kReplayed,  // This operation was done before, under this token. Nothing changes.
  kStale,     // A greater token has been here.
  kMissing,   // No token.
  kAhead,     // Beyond the greatest step allowed: forged or corrupt.
};
[[nodiscard]] PAWL_PUBLIC std::string_view to_text(Verdict verdict);

// How strict a guard is, in the order of a rollout. It is stored with the resource, so that every
// client obeys it.
enum class GuardMode : std::uint8_t {
  kObserve,  // records tokens, judges nothing
  kShadow,   // judges, counts, lets everything through
  kCanary,   // refuses for some per cent of the resources, always the same ones
  kEnforce,  // refuses what is stale or ahead; with require_token also what is missing
};
[[nodiscard]] PAWL_PUBLIC std::string_view to_text(GuardMode mode);

// What a guard's refusal is worth.
enum class Strength : std::uint8_t {
  // Check and write are one atomic, durable step: G8 holds.
  kFenced,
  // Most stale writes are refused, but not all of them can be; `because` says which.
  kBestEffort,
};
[[nodiscard]] PAWL_PUBLIC std::string_view to_text(Strength strength);  // "fenced", "best effort"

struct GuardStrength {
  Strength strength = Strength::kBestEffort;
  std::string because = {};  // for people; empty when it is fenced

  bool operator==(const GuardStrength&) const = default;
};

struct Decision {
  Verdict verdict = Verdict::kMissing;
  std::uint64_t token = 0;
  std::uint64_t max = 0;  // the fence it was compared with; 0: there was none yet
  // Nothing: it was not asked for, because what is admitted is admitted in every mode.
  std::optional<GuardMode> mode = {};
  // A verdict other than admitted or replayed, and it was applied all the same: this mode does not
  // refuse.
  bool let_through = false;

  bool operator==(const Decision&) const = default;
};

// One guard as libpawl uses it. Implementations say which threads may call them.
class PAWL_PUBLIC Guard {
 public:
  virtual ~Guard();

  // For messages: what it guards and where, without secrets.
  [[nodiscard]] virtual std::string name() const = 0;

  // How strong it is, as installed now. A guard that does not say is best effort (guarantee G9).
  [[nodiscard]] virtual GuardStrength strength();

  // Raises the fence of a resource to `token`, durably. When it returns a value no write with a
  // lower token is applied any more, not even one that had begun: it waits for those, up to `wait`.
  //   kStaleToken   the fence is higher. Stop.
  //   kBusy         an older write is still open when `wait` is over; the detail names it. Nothing
  //                 is promised.
  //   kUnknown      it may have been raised.
  // The value is the fence there was before (0: none).
  [[nodiscard]] virtual Result<std::uint64_t> advance(std::string_view resource,
                                                      std::uint64_t token,
                                                      std::chrono::milliseconds wait) = 0;

  // For readers: the verdict a write with this token would get now. Moves nothing, refuses nothing;
  // a kStale decision is a value, not an error. A reader that builds on what it read must check
  // after the read.
  [[nodiscard]] virtual Result<Decision> check(std::string_view resource, std::uint64_t token) = 0;
};

}  // namespace pawl
