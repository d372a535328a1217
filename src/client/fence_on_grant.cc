#include "client/fence_on_grant.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "client/boot_clock.h"
#include "pawl/guard.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kSlice = 500ms;

struct Target {
  Guard* guard;
  std::string resource;
};

// Sorted: all clients advance the same resources in the same order.
std::vector<Target> targets_of(const Lease& lease, std::vector<GuardedResource> guards) {
  std::vector<Target> targets;
  for (GuardedResource& wanted : guards) {
    if (!wanted.resource.empty()) {
      targets.push_back({wanted.guard, std::move(wanted.resource)});
      continue;
    }
    for (const std::string& lock : lease.locks()) targets.push_back({wanted.guard, lock});
  }
  std::sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    return a.resource != b.resource ? a.resource < b.resource : std::less<>{}(a.guard, b.guard);
  });
  return targets;
}

// What a guard's refusal means for the holder of the lock.
Error explain(const Lease& lease, const Target& target, const Error& refused) {
  Error error = refused;
  if (refused.code == Code::kStaleToken) {
    if (const auto decision = target.guard->check(target.resource, lease.floor());
        decision && decision->max > 0) {
      error = lease.stale(decision->max);
    }
  }
  error.detail = target.guard->name() + ", " + target.resource + ": " + error.detail;
  return error;
}

Result<void> advance(const Lease& lease, const Target& target, Instant give_up,
                     const std::stop_token& stop) {
  while (true) {
    if (auto held = lease.check(); !held) return held.error();
    const auto left = std::chrono::floor<std::chrono::milliseconds>(give_up - boot_now());
    const auto slice = std::clamp<std::chrono::milliseconds>(left, 0ms, kSlice);
    // Readers share the smallest live token, below which nobody may write; a writer's floor is its
    // token.
    const auto advanced = target.guard->advance(target.resource, lease.floor(), slice);
    if (advanced) return {};
    // Its outcome is unknown, and it may be repeated: advance is idempotent.
    const bool again =
        advanced.error().code == Code::kBusy || advanced.error().code == Code::kUnknown;
    if (!again || left <= slice) return explain(lease, target, advanced.error());
    if (stop.stop_requested())
      return Error{Code::kUnavailable, "stopped while the guards were being advanced"};
  }
}

}  // namespace

Result<void> fence_on_grant(const Lease& lease, std::vector<GuardedResource> guards,
                            std::chrono::milliseconds wait, const std::stop_token& stop) {
  const Instant give_up = boot_now() + wait;
  for (const Target& target : targets_of(lease, std::move(guards))) {
    if (auto advanced = advance(lease, target, give_up, stop); !advanced) return advanced;
  }
  return {};
}

}  // namespace pawl::client
