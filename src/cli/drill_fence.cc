#include "cli/drill_fence.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace pawl::cli {
namespace {

constexpr std::size_t kListed = 3;

std::string first_lock(const Grant& grant) {
  return grant.locks.empty() ? "another lock" : printable(grant.locks.front());
}

// Of `lock`, live and past.
std::vector<Grant> grants_of_lock(const FenceFacts& facts) {
  std::vector<Grant> grants = facts.past;
  for (const Grant& each : facts.live) {
    if (each.includes(facts.lock)) grants.push_back(each);
  }
  return grants;
}

// A drill's own token shows only that a drill has used this lock. It counts when others use the
// lock as well.
bool proven(const FenceFacts& facts, const std::vector<Grant>& grants, const Grant& at_fence) {
  return facts.fence && (!at_fence.drill || std::ranges::any_of(grants, [](const Grant& each) {
           return !each.drill;
         }));
}

std::string wrong_lock(const FenceFacts& facts, std::uint64_t token, const std::string& lock) {
  if (token == *facts.fence) {
    return fmt::format(
        "token {} holds {} now, and the fence of {} is at this token. The drill would shut "
        "out its holder; use --lock {}",
        token, lock, printable(facts.resource), lock);
  }
  return fmt::format(
      "token {} holds {} now, and the fence of {} is at token {}, which was granted under "
      "the same lock. The drill would shut out its holder; use --lock {}",
      token, lock, printable(facts.resource), *facts.fence, lock);
}

std::string unproven(const FenceFacts& facts, bool known, const std::vector<Grant>& others) {
  std::string text = fmt::format("pawld has no record that a holder of {} has written to {}",
                                 printable(facts.lock), printable(facts.resource));
  if (facts.fence && !known) {
    text += fmt::format(
        ": it does not know token {}, which the fence is at (it has been restarted since, or "
        "the token was granted under another lock or by another pawld)",
        *facts.fence);
  }
  text += ".";
  if (!others.empty()) {
    text += fmt::format(
        " Other locks are held now: {}. If one of these holders writes to {}, the drill shuts "
        "it out.",
        list_of(others), printable(facts.resource));
  }
  if (!facts.sees_all) text += " Your user is not shown all locks: there may be more holders.";
  return text;
}

}  // namespace

bool Grant::includes(std::string_view lock) const {
  return std::ranges::find(locks, lock) != locks.end();
}

std::vector<Grant> others(const FenceFacts& facts) {
  std::vector<Grant> found;
  for (const Grant& each : facts.live) {
    if (!each.drill && !each.includes(facts.lock)) found.push_back(each);
  }
  return found;
}

std::string list_of(const std::vector<Grant>& grants) {
  std::string text;
  // Not std::views::take, which clang 14 cannot compile.
  for (std::size_t i = 0; i < std::min(grants.size(), kListed); ++i) {
    const Grant& each = grants[i];
    text += fmt::format("{}{} (token {})", text.empty() ? "" : ", ", first_lock(each), each.token);
  }
  if (grants.size() > kListed) text += fmt::format(" and {} more", grants.size() - kListed);
  return text;
}

FenceFinding judge(const FenceFacts& facts) {
  const std::vector<Grant> elsewhere = others(facts);
  if (facts.fence) {
    for (const Grant& each : elsewhere) {
      if (each.token == *facts.fence || (facts.other_lock && each.includes(*facts.other_lock))) {
        const std::string lock =
            each.token == *facts.fence ? first_lock(each) : printable(*facts.other_lock);
        return {FenceUse::kWrongLock, wrong_lock(facts, each.token, lock)};
      }
    }
  }
  const std::vector<Grant> grants = grants_of_lock(facts);
  const auto at_fence = std::ranges::find_if(
      grants, [&](const Grant& each) { return facts.fence && each.token == *facts.fence; });
  const bool known = !facts.fence || at_fence != grants.end();
  if (at_fence != grants.end() && proven(facts, grants, *at_fence)) return {FenceUse::kProven};
  if (known && elsewhere.empty() && facts.sees_all) return {FenceUse::kNoOthers};
  return {FenceUse::kUnproven, unproven(facts, known, elsewhere)};
}

}  // namespace pawl::cli
