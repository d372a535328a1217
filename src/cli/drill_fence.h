// Decides whether a drill may raise the fence of a resource that is in use.
//
// The fence shuts out every holder of an older token, whatever lock that token was granted for.
// Raising it is harmless only if all programs that write to the resource take the same lock as the
// drill: then the drill holds that lock, and no other holder is active. pawld does not know which
// program writes where, but it knows for which lock the present token of the fence was granted.
// Pure: no clock, no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::cli {

// A present or former lease.
struct Grant {
  std::uint64_t token = 0;
  std::vector<std::string> locks;
  bool drill = false;  // Its owner is a worker of a drill.

  [[nodiscard]] bool includes(std::string_view lock) const;
};

struct FenceFacts {
  std::string resource;
  std::string lock;                    // that the drill will take
  std::optional<std::uint64_t> fence;  // nothing: no token has been used on the resource yet
  std::vector<Grant> live;             // every lease that pawld shows
  std::vector<Grant> past;             // of `lock`
  // A lock that is held now, and for which the token of the fence was granted earlier.
  std::optional<std::string> other_lock = {};
  bool sees_all = true;  // false: this user is not shown all locks
};

enum class FenceUse : std::uint8_t {
  kProven,     // The last program that wrote to the resource took this lock.
  kNoOthers,   // Unknown, but no other lock is held, so nobody can be shut out.
  kUnproven,   // Unknown, and somebody might be shut out.
  kWrongLock,  // The last program that wrote to it took another lock, which is held now.
};

struct FenceFinding {
  FenceUse use = FenceUse::kProven;
  std::string detail = {};  // kUnproven: what is unknown; kWrongLock: what to do instead
};

[[nodiscard]] FenceFinding judge(const FenceFacts& facts);
// The leases that could be shut out: live, for other locks, and not of drills.
[[nodiscard]] std::vector<Grant> others(const FenceFacts& facts);
// For people: "billing/nightly (token 106)", the first few of them.
[[nodiscard]] std::string list_of(const std::vector<Grant>& grants);

}  // namespace pawl::cli
