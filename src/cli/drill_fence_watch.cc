#include "cli/drill_fence_watch.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/text.h"
#include "cli/lock_pages.h"
#include "cli/reply.h"
#include "drill/worker.h"

namespace pawl::cli {
namespace {

constexpr std::size_t kHistoriesMax = 1'000;  // Each is a request to pawld.
constexpr const char* kHistoryCount = "1000";
// A user who may not inspect this lock is limited to prefixes, and LOCKS omits all other locks
// silently.
constexpr const char* kProbe = "pawl-drill-visibility-probe";

Grant to_grant(const wire::Value& map) {
  Grant grant{.token = static_cast<std::uint64_t>(integer_of(map, "token").value_or(0)),
              .locks = {}};
  for (const wire::Value& lock : items_of(map, "locks")) grant.locks.push_back(lock.text);
  const wire::Value* owner = map.find("owner");
  grant.drill = owner != nullptr && owner->text.starts_with(drill::kWorkerOwner);
  return grant;
}

}  // namespace

FenceWatch::FenceWatch(Console& console, std::unique_ptr<guard::Administration> guard,
                       std::string resource, std::string lock)
    : console_(console), guard_(std::move(guard)) {
  facts_.resource = std::move(resource);
  facts_.lock = std::move(lock);
}

Result<FenceFinding> FenceWatch::examine() {
  // The fence first: its token was granted before that.
  auto fence = guard_->fence(facts_.resource);
  if (!fence) return fence.error();
  facts_.fence = *fence;
  const auto probe = console_.ask({"INSPECT", kProbe});
  if (!probe && probe.error().code != Code::kDenied) return probe.error();
  facts_.sees_all = probe.has_value();
  if (const auto read = read_live(); !read) return read.error();
  if (const auto read = read_past(); !read) return read.error();
  if (judge(facts_).use != FenceUse::kProven) {
    if (const auto found = find_other_lock(); !found) return found.error();
  }
  FenceFinding finding = judge(facts_);
  use_ = finding.use;
  if (use_ == FenceUse::kProven) harmless_.insert(*facts_.fence);
  return finding;
}

std::optional<Error> FenceWatch::before_advance(std::uint64_t token) {
  const auto fence = guard_->fence(facts_.resource);
  if (!fence) return fence.error();
  const bool known = *fence && harmless_.contains(**fence);
  harmless_.insert(token);
  if (known && use_ == FenceUse::kProven) return std::nullopt;
  if (const auto read = read_live(); !read) return read.error();
  if (use_ != FenceUse::kProven) {
    if (const auto found = find_other_lock(); !found) return found.error();
    if (const FenceFinding first = judge(facts_); first.use == FenceUse::kWrongLock)
      return Error{Code::kInvalid, first.detail};
  }
  FenceFacts now = facts_;
  now.fence = *fence;
  now.other_lock.reset();
  if (const FenceFinding finding = judge(now); finding.use == FenceUse::kWrongLock)
    return Error{Code::kInvalid, finding.detail};
  if (use_ == FenceUse::kProven || accepted_) return std::nullopt;
  if (const auto holders = others(facts_); !holders.empty()) {
    return Error{
        Code::kBusy,
        fmt::format("another lock was taken meanwhile: {}. pawld has no record that a holder of {} "
                    "has written to {}, so the drill does not risk shutting out a holder",
                    list_of(holders), printable(facts_.lock), printable(facts_.resource))};
  }
  return std::nullopt;
}

Result<void> FenceWatch::read_live() {
  std::map<std::uint64_t, Grant>
      found;  // by token: a lease on several locks is listed under each of them
  const auto listed = each_lock_page(console_, "", [&](const LockPage& page) -> Result<void> {
    for (const wire::Value& lock : page) {
      for (const wire::Value& holder : items_of(lock, "holders")) {
        Grant grant = to_grant(holder);
        if (const wire::Value* name = lock.find("lock");
            name != nullptr && !grant.includes(name->text))
          grant.locks.push_back(name->text);
        found.insert_or_assign(grant.token, std::move(grant));
      }
    }
    return {};
  });
  if (!listed) return listed;
  facts_.live.clear();
  for (auto& [token, grant] : found) facts_.live.push_back(std::move(grant));
  return {};
}

Result<void> FenceWatch::read_past() {
  const auto history = console_.ask({"HISTORY", facts_.lock, "COUNT", kHistoryCount});
  if (!history) return history.error();
  facts_.past.clear();
  for (const wire::Value& epoch : history->items) facts_.past.push_back(to_grant(epoch));
  return {};
}

Result<void> FenceWatch::find_other_lock() {
  if (!facts_.fence) return {};
  for (const Grant& holder : others(facts_)) {
    for (const std::string& lock : holder.locks) {
      if (examined_.size() >= kHistoriesMax || !examined_.insert(lock).second) continue;
      const auto history = console_.ask({"HISTORY", lock, "COUNT", kHistoryCount});
      if (!history) return history.error();
      for (const wire::Value& epoch : history->items) {
        if (to_grant(epoch).token == *facts_.fence) facts_.other_lock = lock;
      }
    }
  }
  return {};
}

}  // namespace pawl::cli
