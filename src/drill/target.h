// What a drill writes to, and how a worker reaches it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guard/session.h"
#include "pawl/result.h"

namespace pawl::drill {

// What a worker must know to write; it goes to it over a pipe.
struct Target {
  std::string kind;   // of guard: a name in guard/kinds.h
  std::string where;  // a DSN, or a file
  std::string resource;
  // Made by the drill, in the kind's scratch form; else the user's own.
  bool scratch = true;
  bool guarded = true;  // false: nothing judges; scratch only
  // Every write is judged (triggers); else only a write that asks. The user's own only.
  bool watched = true;
  // What a write to the user's own does; it is always rolled back. `:token` in it stands for the
  // token. Empty: the write is only judged.
  std::string statement = {};
};

// One writer's connection to the target. Used by one thread.
class Writer {
 public:
  virtual ~Writer() = default;

  // A whole write under this token, in a transaction of its own. What is answered is the guard's
  // verdict; passed() means that it is in effect (or, for the user's own, that it would be).
  virtual guard::Outcome write(std::uint64_t token, const std::string& value) = 0;
  // What a new holder does before it reads what it will build on. kDone when nobody guards.
  virtual guard::Outcome advance(std::uint64_t token, std::chrono::milliseconds wait) = 0;
};

[[nodiscard]] Result<std::unique_ptr<Writer>> open_writer(const Target& target);

// A connection of its own, and what can be done with it.
struct TargetSession {
  std::unique_ptr<guard::Session> session;
  guard::Abilities abilities;
};
[[nodiscard]] Result<TargetSession> open_session(const Target& target);
// Runs the statement of the user's own in the open transaction. kBroken also when it has ended that.
[[nodiscard]] guard::Outcome execute(guard::Session& session, const Target& target,
                                     std::optional<std::uint64_t> token);

// After a deadlock or a serialization failure, which say nothing about the token.
inline constexpr int kAttempts = 20;

inline constexpr std::string_view kTokenMark = ":token";

}  // namespace pawl::drill
