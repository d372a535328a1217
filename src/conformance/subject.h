// A guard under test, as the conformance kit drives it.
//
// The kit knows nothing of databases or wires. Whoever wants a guard tested implements these two
// classes (or answers the same questions over a pipe: process_subject.h): a Subject makes clean
// resources and tells what happened to them, a Session is one independent writer, with a connection
// of its own where there are connections.
//
//   auto resource = subject.fresh({}, 1);                   // under guard, in mode enforce, without a fence
//   auto session = subject.open();
//   (*session)->write({*resource, "34", {}}, "v1");         // answers kAdmitted, and effects() tells (34, "v1")
//
// A write's effect is one line (token, value) in the resource's log; that is all a case needs to
// see whether a write took effect, once, and in which order.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::conformance {

// What a guard can do beyond the least. A case that needs what is not there is reported as not
// applicable.
enum class Ability : std::uint8_t {
  kTransactions,    // A write is admitted, applied and committed in steps, and can be rolled back.
  kReadCommitted,   // Transactions can be begun at this level; so for the two below.
  kRepeatableRead,  //
  kSerializable,    //
  kConcurrency,     // Sessions may be used by several threads at once, one each.
  kOperationSet,    // Remembers which operations were done under the current token.
  kOperationLast,   // Remembers the greatest operation under the current token only.
  kSeveral,         // One write may name several resources, under one token.
  kTextTokens,      // Takes a token as text, so that it must judge the spelling too.
  kTokenless,       // A write without a token can be sent at all.
  kUnguarded,       // A write can name a resource that nobody put under guard.
  kModes,           // observe, shadow, enforce
  kCanary,          //
  kEmergency,       //
  kRequireToken,    // The policies; each of them.
  kMaxStep,         //
  kEqualOnce,       //
  kEqualRefuse,     //
  kCounts,          // Counts its verdicts.
  kRemove,          // What is under guard can be deleted, and comes back with the next write.
  kCompact,         // Can forget what is below a token.
  kLostCommit,      // A connection can be cut between the commit and its answer.
  kVanish,          // A session can be cut off in the middle of a transaction.
};
inline constexpr std::size_t kAbilityCount = 23;
[[nodiscard]] std::string_view to_text(Ability ability);
[[nodiscard]] std::optional<Ability> parse_ability(std::string_view text);

class Abilities {
 public:
  constexpr Abilities() = default;
  constexpr Abilities(std::initializer_list<Ability> list) {  // NOLINT: implicit by design
    for (const Ability ability : list) bits_ |= bit(ability);
  }
  [[nodiscard]] constexpr bool has(Ability ability) const { return (bits_ & bit(ability)) != 0; }
  [[nodiscard]] constexpr bool any() const { return bits_ != 0; }
  constexpr void add(Ability ability) { bits_ |= bit(ability); }
  [[nodiscard]] constexpr Abilities without(Abilities others) const {
    return from(bits_ & ~others.bits_);
  }
  [[nodiscard]] constexpr Abilities common(Abilities others) const {
    return from(bits_ & others.bits_);
  }
  [[nodiscard]] std::vector<Ability> list() const;

 private:
  static constexpr std::uint32_t bit(Ability ability) {
    return std::uint32_t{1} << static_cast<unsigned>(ability);
  }
  static constexpr Abilities from(std::uint32_t bits) {
    Abilities made;
    made.bits_ = bits;
    return made;
  }
  std::uint32_t bits_ = 0;
};

enum class Isolation : std::uint8_t { kDefault, kReadCommitted, kRepeatableRead, kSerializable };
[[nodiscard]] std::string_view to_text(Isolation isolation);

enum class Equal : std::uint8_t {
  kAccept,  // A holder writes many times under one token.
  kOnce,    // An equal token needs an operation number.
  kRefuse,  // Strictly greater only.
};
[[nodiscard]] std::string_view to_text(Equal equal);

struct Policy {
  GuardMode mode = GuardMode::kEnforce;
  int percent = 100;  // canary
  bool require_token = false;
  Equal equal = Equal::kAccept;
  std::uint64_t max_step = std::uint64_t{1} << 44;
};

// How a step ended. The first five are the contract's verdicts.
enum class Answer : std::uint8_t {
  kAdmitted,
  kReplayed,
  kStale,
  kMissing,
  kAhead,
  kMalformed,  // No token can look like that, or no operation.
  kUnguarded,  // Nobody put this resource under guard.
  kDone,       // A step that is not judged was taken: begin, apply, commit, roll back, advance.
  // Not at this isolation level: nothing happened, and it passes only once the token was advanced
  // to.
  kIsolation,
  // A serialization failure or a deadlock: nothing happened, the same may pass when it is tried
  // again.
  kAgain,
  kBusy,     // advance: an older write is still open. Nothing is promised.
  kUnknown,  // It may have happened.
  kBroken,   // Anything else; the detail says what. No case expects it.
};
[[nodiscard]] std::string_view to_text(Answer answer);
[[nodiscard]] std::optional<Answer> parse_answer(std::string_view text);

struct Outcome {
  Answer answer = Answer::kBroken;
  // A verdict other than admitted or replayed, and it went on all the same: this mode does not
  // refuse.
  bool let_through = false;
  std::string detail = {};

  // Whether a write that ended like this is in effect (or a step of one may go on).
  [[nodiscard]] bool passed() const {
    return answer == Answer::kAdmitted || answer == Answer::kDone || let_through;
  }
};

// Who writes what: the token as text, because some cases send what is no token; none at all is a
// case as well.
struct Admission {
  std::vector<std::string> resources;
  std::optional<std::string> token = {};
  std::optional<std::uint64_t> operation = {};
};

struct Effect {
  std::uint64_t token = 0;  // 0: none was given
  std::string value;

  bool operator==(const Effect&) const = default;
};

struct Advanced {
  Outcome outcome;                           // kDone, kStale, kBusy, …
  std::optional<std::uint64_t> before = {};  // the fence there was; nothing: none
};

struct Checked {
  Outcome outcome;  // the verdict that a write would get now; let_through: and it would be applied
  std::optional<std::uint64_t> max = {};
};

// Since the resource was made.
struct Counts {
  std::uint64_t replayed = 0;
  std::uint64_t stale = 0;
  std::uint64_t missing = 0;
  std::uint64_t ahead = 0;
  std::uint64_t would_refuse = 0;
};

// One writer or reader. One thread at a time; different sessions may be used by different threads.
class Session {
 public:
  virtual ~Session() = default;

  // With kTransactions. After a step that did not pass, the kit rolls back before it begins again.
  virtual Outcome begin(Isolation isolation) = 0;
  virtual Outcome admit(const Admission& admission) = 0;
  // Appends to the resource's log, under what was admitted.
  virtual Outcome apply(const std::string& resource, const std::string& value) = 0;
  virtual Outcome commit() = 0;
  virtual Outcome rollback() = 0;
  // Without kTransactions: all of it in one step.
  virtual Outcome write(const Admission& admission, const std::string& value) = 0;
  // Sends the commit and hangs up without waiting for the answer. Nothing else can be done with the
  // session then.
  virtual void lose_commit() = 0;
  // Hangs up in the middle.
  virtual void vanish() = 0;

  virtual Advanced advance(const std::string& resource, std::uint64_t token,
                           std::chrono::milliseconds wait) = 0;
  virtual Checked check(const std::string& resource, std::uint64_t token) = 0;
  // Deletes what is under guard, as the holder of that token.
  virtual Outcome remove(const std::string& resource, std::uint64_t token) = 0;
  // Instead of apply(), where there is a language for it: whatever the user wants done under what
  // was admitted. No case asks for it.
  virtual Outcome execute(const std::string& statement) {
    return {Answer::kBroken, false, "cannot execute: " + statement};
  }
};

// Used by one thread, except that sessions go their own ways. An error of these calls means that
// the kit cannot go on with the case, never that the guard has refused something.
class Subject {
 public:
  virtual ~Subject() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Abilities abilities() const = 0;

  // Resources that nobody has used, under a guard with this policy; under one guard where a guard
  // has several.
  virtual Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) = 0;
  // One more of the kind, without a guard: admitting is kDone whatever the token, and effects()
  // tells the token all the same. For showing what happens where nothing refuses; no case needs it.
  virtual Result<std::string> bare() {
    return Error{Code::kInvalid, name() + " has nothing without a guard"};
  }
  virtual Result<std::unique_ptr<Session>> open() = 0;
  // No case will use them again; whoever pays for keeping them may drop them.
  virtual void retire(const std::vector<std::string>& resources) { static_cast<void>(resources); }

  // Takes effect before it returns.
  virtual Result<void> set_policy(const std::string& resource, const Policy& policy) = 0;
  virtual Result<void> emergency(const std::string& resource) = 0;
  virtual Result<void> compact(const std::string& resource, std::uint64_t below) = 0;

  // Nothing: none yet.
  virtual Result<std::optional<std::uint64_t>> fence(const std::string& resource) = 0;
  // In the order in which they took effect, that is: in which others could see them.
  virtual Result<std::vector<Effect>> effects(const std::string& resource) = 0;
  virtual Result<Counts> counts(const std::string& resource) = 0;
};

}  // namespace pawl::conformance
