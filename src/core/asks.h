// Asks: the locks whose holders somebody has asked to let go. An ask concerns the leases that held
// the lock when it came, is handed out with their renewals, and is forgotten when the last of them
// is gone. Memory only: after a restart nobody has been asked.
//
// At most one for each lock: a later one takes the place of the one before, whether its holders have
// heard of that or not. Bounded in all and for each user.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "base/types.h"
#include "core/accounts.h"
#include "core/outputs.h"
#include "core/slab.h"

namespace pawl::core {

struct LockAsk {
  // Grows from ask to ask, over restarts as well: the time by the wall clock, or one more than the
  // ask before. A holder that has seen this number knows the ask.
  std::uint64_t number = 0;
  Tick at{};
  Token newest;  // The newest lease that was asked; later ones were not.
  AccountId account = 0;
  std::string by, reason;
};

struct AskQuota {
  std::size_t in_all = limits::kAsksMax;
  std::size_t per_user = limits::kAsksPerUser;
};

class Asks {
 public:
  explicit Asks(AskQuota quota) : quota_(quota) {}

  [[nodiscard]] bool empty() const { return by_lock_.empty(); }
  [[nodiscard]] std::size_t size() const { return by_lock_.size(); }
  // nullptr when there is none.
  [[nodiscard]] const LockAsk* find(Index lock) const {
    const auto found = by_lock_.find(lock);
    return found == by_lock_.end() ? nullptr : &found->second;
  }
  // What an ask of this user, in the place of `before` if that is not nullptr, would exceed; nothing
  // when it fits.
  [[nodiscard]] std::optional<Refused> check(AccountId account, const LockAsk* before) const {
    if (before != nullptr && before->account == account) return std::nullopt;
    Refused refused{.why = Refused::Why::kAsksFull, .use = size(), .limit = quota_.in_all};
    if (before == nullptr && size() >= quota_.in_all) return refused;
    const auto found = account == 0 ? by_user_.end() : by_user_.find(account);
    if (found == by_user_.end() || found->second < quota_.per_user) return std::nullopt;
    refused.use = found->second;
    refused.limit = quota_.per_user;
    refused.per_user = true;
    return refused;
  }
  // Takes the place of the one that the lock has. Its number is set here; `wall` is the time now.
  const LockAsk& put(Index lock, LockAsk ask, UnixMs wall) {
    forget(lock);
    ask.number = last_number_ = std::max(last_number_ + 1, wall.value);
    ++by_user_[ask.account];
    return by_lock_.insert_or_assign(lock, std::move(ask)).first->second;
  }
  void forget(Index lock) {
    const auto found = by_lock_.find(lock);
    if (found == by_lock_.end()) return;
    const auto user = by_user_.find(found->second.account);
    if (--user->second == 0) by_user_.erase(user);
    by_lock_.erase(found);
  }

 private:
  const AskQuota quota_;
  std::unordered_map<Index, LockAsk> by_lock_;
  std::unordered_map<AccountId, std::size_t> by_user_;  // How many each has asked for; 0 as well.
  std::uint64_t last_number_ = 0;
};

}  // namespace pawl::core
