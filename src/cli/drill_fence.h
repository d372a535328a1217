// May a drill raise the fence of a resource that is in use?
//
// The fence shuts out every holder of an older token, under whichever lock it was granted. Raising
// it harms nobody only if all who write to the resource take the lock that the drill takes: then
// the drill holds that lock, and no other holder is at work. pawld cannot know who writes where,
// but it knows under which lock the token that the fence is at was granted. No clock, no socket:
// facts in, a finding out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::cli {

// A lease that is live, or that has been.
struct Grant {
  std::uint64_t token = 0;
  std::vector<std::string> locks;
  bool drill = false;  // of a worker of a drill

  [[nodiscard]] bool includes(std::string_view lock) const;
};

struct FenceFacts {
  std::string resource;
  std::string lock;                    // which the drill will take
  std::optional<std::uint64_t> fence;  // nothing: no token has been used on the resource yet
  std::vector<Grant> live;             // every lease that pawld shows
  std::vector<Grant> past;             // of `lock`
  // A lock that is held now and under which the token of the fence was granted once.
  std::optional<std::string> other_lock = {};
  bool sees_all = true;  // false: this user is not shown all locks
};

enum class FenceUse : std::uint8_t {
  kProven,     // The last who wrote to the resource took this lock.
  kNoOthers,   // Not known, but nobody holds another lock, so nobody can be shut out.
  kUnproven,   // Not known, and somebody might be.
  kWrongLock,  // The last who wrote to it took another lock, which is held now.
};

struct FenceFinding {
  FenceUse use = FenceUse::kProven;
  std::string detail = {};  // kUnproven: what is not known; kWrongLock: what to do instead
};

[[nodiscard]] FenceFinding judge(const FenceFacts& facts);
// Those who could be shut out: leases that are live under other locks, without those of drills.
[[nodiscard]] std::vector<Grant> others(const FenceFacts& facts);
// For people: "billing/nightly (token 106)", the first few of them.
[[nodiscard]] std::string list_of(const std::vector<Grant>& grants);

}  // namespace pawl::cli
