// Scratch resources of one kind of guard: made for a test or a drill, and removed at its end.
//
// A write to one is a line (token, value) in its log. That is enough to see whether a write took
// effect, once, and in which order. The conformance kit runs its cases against a ScratchSpace, so
// that a guard that is to be tested implements this and Session (session.h), or answers the same
// questions over a pipe (conformance/process_subject.h).
//
//   auto resource = space.fresh({}, 1);  // under guard, in enforce, without a fence
//   auto session = space.open();
//   write_whole(**session, space.abilities(), {}, {*resource, "34"}, "v1");  // kAdmitted
//   space.effects(resource->front());                                        // (34, "v1")
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/session.h"

namespace pawl::guard {

// How a token equal to the fence is treated.
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

struct Effect {
  std::uint64_t token = 0;  // 0: none was given
  std::string value;

  bool operator==(const Effect&) const = default;
};

// Since the resource was made.
struct Counts {
  std::uint64_t replayed = 0;
  std::uint64_t stale = 0;
  std::uint64_t missing = 0;
  std::uint64_t ahead = 0;
  std::uint64_t would_refuse = 0;
};

// Used by one thread; the sessions it opens may each be used by another. An error of these calls
// means that the caller cannot go on, never that the guard has refused something. Calls that need
// an ability have a default that fails: override those whose ability abilities() names.
class ScratchSpace {
 public:
  virtual ~ScratchSpace() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Abilities abilities() const = 0;
  // Why abilities() does not name this one, for people: "SQLite has no prepared transactions".
  // Empty: the space does not say.
  [[nodiscard]] virtual std::string why_not(Ability ability) const {
    static_cast<void>(ability);
    return {};
  }

  // New resources under a guard with this policy; under one guard where a guard has several.
  virtual Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) = 0;
  // kSpellings. One new resource under a guard, by each of two names that it goes by.
  virtual Result<std::vector<std::string>> fresh_spellings(const Policy& policy);
  // A new resource of the same form without a guard: admitting is kDone whatever the token, and
  // effects() has the token all the same. Shows what happens where nothing refuses.
  virtual Result<std::string> bare();
  virtual Result<std::unique_ptr<Session>> open() = 0;
  // The caller will not use these again.
  virtual void retire(const std::vector<std::string>& resources) { static_cast<void>(resources); }

  // kModes. In effect when it returns.
  virtual Result<void> set_policy(const std::string& resource, const Policy& policy);
  virtual Result<void> emergency(const std::string& resource);                     // kEmergency
  virtual Result<void> compact(const std::string& resource, std::uint64_t below);  // kCompact
  virtual Result<Counts> counts(const std::string& resource);                      // kCounts
  // kRehearsal. All is checked as in set_policy() and compact(), and nothing changes.
  virtual Result<void> rehearse_policy(const std::string& resource, const Policy& policy);
  virtual Result<void> rehearse_compact(const std::string& resource, std::uint64_t below);

  // kUnreachable. Puts something of the user's between advance() and the resource that silently
  // drops what advance() writes there, and lets other writes pass.
  virtual Result<void> make_unreachable(const std::string& resource);
  // kEnclosed. Makes what is under guard a part of something larger. Returns the name by which
  // writes reach it through that; nothing: the guard has refused it.
  virtual Result<std::optional<std::string>> enclose(const std::string& resource);

  // Nothing: none yet.
  virtual Result<std::optional<std::uint64_t>> fence(const std::string& resource) = 0;
  // In the order in which they took effect, that is: in which others could see them.
  virtual Result<std::vector<Effect>> effects(const std::string& resource) = 0;

 protected:
  [[nodiscard]] Error unable(std::string_view what) const;
};

}  // namespace pawl::guard
