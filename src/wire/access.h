// Roles: what a command needs, and what a user has.
//
//   if (!wire::permits(session.access, verb.access)) return reply.error(…);
#pragma once

#include <cstdint>
#include <string_view>

namespace pawl::wire {

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

// "anyone", "any user", "observe", "use", "admin", "backup".
[[nodiscard]] std::string_view to_text(Access access);

}  // namespace pawl::wire
