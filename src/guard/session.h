// One writer to guarded resources, whatever they are in: a database, a file, a service behind a
// process. The drills, the demo, the nemesis and the conformance kit all write through this.
//
// With the ability kTransactions a write is begin, admit, apply (or execute), commit; without it a
// write is one step, write(). write_whole() does whichever it has to be.
//
//   auto session = find_kind("postgres")->open_session(dsn, {});
//   (*session)->begin(Isolation::kDefault);
//   (*session)->admit({{"orders"}, "34"});                       // kAdmitted, or a refusal
//   (*session)->execute("UPDATE orders SET state = 'shipped'");
//   (*session)->commit();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

namespace pawl::guard {

// What a guard can do beyond the minimum. A conformance case that needs what is missing is reported
// as not applicable.
enum class Ability : std::uint8_t {
  kTransactions,   // A write is admitted, applied and committed in steps, and can be rolled back.
  kReadCommitted,  // Transactions can be begun at this level; so for the two below.
  kRepeatableRead,
  kSerializable,
  kConcurrency,    // Sessions may be used by several threads at once, one each.
  kOperationSet,   // Remembers which operations were done under the current token.
  kOperationLast,  // Remembers only the greatest operation under the current token.
  kSeveral,        // One write may name several resources, under one token.
  kTextTokens,     // Takes a token as text, so that it must check the spelling too.
  kTokenless,      // A write without a token can be sent at all.
  kUnguarded,      // A write can name a resource that is not under guard.
  kModes,          // observe, shadow, enforce
  kCanary,
  kEmergency,
  kRequireToken,  // The policies; each of them.
  kMaxStep,
  kEqualOnce,
  kEqualRefuse,
  kCounts,      // Counts its verdicts.
  kRemove,      // What is under guard can be deleted, and comes back with the next write.
  kCompact,     // Can forget what is below a token.
  kLostCommit,  // A connection can be cut between the commit and its answer.
  kVanish,      // A session can be cut off in the middle of a transaction.
  kPrepared,    // Two-phase commit: a prepared write outlives its session, and any session ends it.
  kSpellings,   // Two names that are spelled differently can be one resource.
  kMoves,       // What is under guard can move from one resource to another: rows, objects, files.
  kElsewhere,   // A write can change another resource than the one its token was admitted for.
  kRehearsal,   // Changes of policies and floors can be rehearsed.
  kUnreachable,  // Something of the user's can keep an advance from reaching the resource.
  kEnclosed,  // What is under guard can become a part of something larger: a partition, a folder.
};
inline constexpr std::size_t kAbilityCount = 30;
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
  constexpr void add(Abilities others) { bits_ |= others.bits_; }
  [[nodiscard]] constexpr Abilities without(Abilities others) const {
    return from(bits_ & ~others.bits_);
  }
  [[nodiscard]] constexpr Abilities common(Abilities others) const {
    return from(bits_ & others.bits_);
  }
  [[nodiscard]] std::vector<Ability> list() const;

 private:
  static constexpr std::uint64_t bit(Ability ability) {
    return std::uint64_t{1} << static_cast<unsigned>(ability);
  }
  static constexpr Abilities from(std::uint64_t bits) {
    Abilities made;
    made.bits_ = bits;
    return made;
  }
  std::uint64_t bits_ = 0;
};

enum class Isolation : std::uint8_t { kDefault, kReadCommitted, kRepeatableRead, kSerializable };
[[nodiscard]] std::string_view to_text(Isolation isolation);

// How a step ended. The first five are the contract's verdicts.
enum class Answer : std::uint8_t {
  kAdmitted,
  kReplayed,
  kStale,
  kMissing,
  kAhead,
  kMalformed,  // Not the spelling of a token, or of an operation.
  kUnguarded,  // This resource is not under guard.
  kDone,       // A step that is not judged succeeded: begin, apply, commit, roll back, advance.
  // Not possible at this isolation level: nothing happened. It passes once the token was advanced
  // to.
  kIsolation,
  // A serialization failure or a deadlock: nothing happened; the same may pass when it is tried
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
  // The verdict is neither admitted nor replayed, and the write was applied all the same: this mode
  // does not refuse.
  bool let_through = false;
  std::string detail = {};
  // Of execute(): how many rows the statement has changed. Nothing: not known.
  std::optional<std::uint64_t> rows = {};

  // Whether a write that ended like this is in effect (or the next step of one may follow).
  [[nodiscard]] bool passed() const {
    return answer == Answer::kAdmitted || answer == Answer::kDone || let_through;
  }
};
[[nodiscard]] Outcome to_outcome(const Result<Decision>& decision);

// The resources of a write, and the token it is made under. The token is text because conformance
// cases also send what is not a token; no token at all is a case, too.
struct Admission {
  std::vector<std::string> resources;
  std::optional<std::string> token = {};
  std::optional<std::uint64_t> operation = {};
  // The write carries its token and is judged only when it comes, where a guard has that way, too.
  // Others ignore this.
  bool carried = false;
};

struct Advanced {
  Outcome outcome;                           // kDone, kStale, kBusy, …
  std::optional<std::uint64_t> before = {};  // the fence before; nothing: there was none
};

struct Checked {
  Outcome outcome;  // the verdict a write would get now; let_through: and it would be applied
  std::optional<std::uint64_t> max = {};
};

// A write under a lease, for write_held().
struct HeldWrite {
  std::string resource;
  std::uint64_t operation = 0;  // 0: none
  // As execute() takes it. Called when the token has been admitted, perhaps several times.
  std::function<std::string()> statement;
};

// One writer or reader, with a connection of its own where there are connections. Used by one
// thread at a time; different sessions may be used by different threads.
class Session {
 public:
  virtual ~Session() = default;

  // --- With kTransactions. After a step that did not pass, roll back before the next begin(). ----

  virtual Outcome begin(Isolation isolation);
  virtual Outcome admit(const Admission& admission);
  // Gives the token without asking for a verdict, so that the write itself must be judged: kDone
  // whatever the token is. As a program does that sets the token and writes, or that goes on after
  // a refusal. Only where carry_words() is not empty.
  virtual Outcome carry(const Admission& admission);
  // For people, what admit() and carry() do: "pawl.use()", "SET LOCAL pawl.token.orders".
  [[nodiscard]] virtual std::string admit_words();
  [[nodiscard]] virtual std::string carry_words(const std::string& resource);
  // Appends (token, value) to the log of a scratch resource, under what was admitted.
  virtual Outcome apply(const std::string& resource, const std::string& value);
  // Where there is a language for it: whatever the user wants done under what was admitted. A
  // statement that is known to end the transaction is kBroken, and not executed.
  virtual Outcome execute(const std::string& statement);
  // False after a statement that has ended the transaction all the same: a procedure that commits.
  [[nodiscard]] virtual bool in_transaction();
  virtual Outcome commit();
  virtual Outcome rollback();
  // With kLostCommit: sends the commit and hangs up without waiting for the answer. The session
  // cannot be used any more.
  virtual void lose_commit();
  // With kVanish: hangs up in the middle of a transaction.
  virtual void vanish();

  // --- With kPrepared: a transaction that prepare() ends instead of commit(), under this name. ----

  virtual Outcome begin_prepared(Isolation isolation, const std::string& name);
  virtual Outcome prepare(const std::string& name);
  // By any session, also when the one that prepared it is gone.
  virtual Outcome commit_prepared(const std::string& name);
  virtual Outcome roll_back_prepared(const std::string& name);

  // --- Without kTransactions: admitted, applied and made durable in one step. --------------------

  virtual Outcome write(const Admission& admission, const std::string& value);
  // With kElsewhere: the same to `resource`, under a token that was admitted for others.
  virtual Outcome write_to(const std::string& resource, const Admission& admission,
                           const std::string& value);

  // --- Everywhere. -------------------------------------------------------------------------------

  virtual Advanced advance(const std::string& resource, std::uint64_t token,
                           std::chrono::milliseconds wait) = 0;
  virtual Checked check(const std::string& resource, std::uint64_t token) = 0;
  // With kRemove: deletes what is under guard, as the holder of that token.
  virtual Outcome remove(const std::string& resource, std::uint64_t token);
  // With kMoves: moves all that is under guard at `from` to `to`, as a whole write under what the
  // admission names, which may be only one of them.
  virtual Outcome move(const std::string& from, const std::string& to, const Admission& admission);
  // False: the connection is lost. Open another session.
  [[nodiscard]] virtual bool connected() const { return true; }

  // --- Where libpawl has a front for this guard (pawl/postgres.h and so on). ---------------------

  // The front on this session's connection, for AcquireOptions::guards. nullptr: there is none.
  [[nodiscard]] virtual Guard* front() { return nullptr; }
  // A whole write by the front, which retries, and settles an unknown commit, while the lease
  // lives. Only where front() is not nullptr.
  virtual Result<Decision> write_held(const Lease& lease, const HeldWrite& write);
};

// The steps of a transaction up to the commit, which is left to the caller. The verdict; nothing is
// open any more when it has not passed.
Outcome begin_write(Session& session, Isolation isolation, const Admission& admission,
                    const std::string& value);
// With kElsewhere: one whole write to `resource`, whatever the admission names.
Outcome write_elsewhere(Session& session, Abilities abilities, const std::string& resource,
                        const Admission& admission, const std::string& value);
// One whole write to a scratch resource: in steps with kTransactions, else in one. What did not
// pass is rolled back.
Outcome write_whole(Session& session, Abilities abilities, Isolation isolation,
                    const Admission& admission, const std::string& value);

}  // namespace pawl::guard
