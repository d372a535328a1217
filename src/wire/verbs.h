// The one table of commands. Dispatch, access, help, COMMAND DOCS, metric names and the protocol
// page read it.
//
//   const wire::Verb* verb = wire::find_verb(args[0]);            // any case; nullptr: unknown
//   if (!wire::permits(session.access, verb->access)) return reply.error(…);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pawl::wire {

enum class VerbId : std::uint8_t {
  kAcquire,
  kCancel,
  kRenew,
  kMRenew,
  kRelease,
  kInspect,
  kLocks,
  kHistory,
  kObserve,
  kUnobserve,
  kBreak,
  kRaise,
  kBackup,
  kStatus,
  kHello,
  kAuth,
  kPing,
  kEcho,
  kQuit,
  kReset,
  kSelect,
  kClient,
  kCommand,
  kInfo,
  kConfig,
  kTime,
  kHelp,
};
inline constexpr std::size_t kVerbCount = 27;

// What a command needs. kNone: works before authentication. kUser: any user. The others are roles:
// observe, use and admin each include the ones before them; backup includes none of them, and admin
// includes it.
enum class Access : std::uint8_t { kNone, kUser, kObserve, kUse, kAdmin, kBackup };

// Whether a user of that role may use what needs `needed`. A session without a user has kNone.
[[nodiscard]] constexpr bool permits(Access role, Access needed) {
  if (needed == Access::kNone || role == Access::kAdmin) return true;
  if (role == Access::kNone) return false;
  if (needed == Access::kUser) return true;
  if (role == Access::kBackup || needed == Access::kBackup) return role == needed;
  return role >= needed;
}

struct Verb {
  VerbId id;
  std::string_view name;  // upper case; lower case it for metrics
  int arity;              // counts the name, as in Redis; negative: at least
  Access access;
  std::string_view group;  // "lock", "lease", "inspect", "operate", "connection", "server"
  bool reserved_lane;      // answered on the connections kept for renewals
  bool while_loading;      // answered before the store is loaded
  std::string_view usage;  // arguments only; empty when there are none
  std::string_view summary;
  std::string_view reply;
  std::string_view example;  // a whole line, as typed into redis-cli
  std::string_view since;

  // Whether `args` arguments, the name included, can be right.
  [[nodiscard]] constexpr bool accepts(std::size_t args) const {
    return arity >= 0 ? args == static_cast<std::size_t>(arity)
                      : args >= static_cast<std::size_t>(-arity);
  }
};

// In the order of VerbId.
[[nodiscard]] std::span<const Verb> all_verbs();
[[nodiscard]] const Verb& verb(VerbId id);
// Ignores case; allocates nothing.
[[nodiscard]] const Verb* find_verb(std::string_view name);
[[nodiscard]] std::string_view to_text(Access access);
// RESP2 has no pushes: a connection that observes reads messages, and only these are answered on
// it.
[[nodiscard]] constexpr bool answered_while_observing(VerbId id) {
  return id == VerbId::kObserve || id == VerbId::kUnobserve || id == VerbId::kPing ||
         id == VerbId::kQuit;
}

}  // namespace pawl::wire
