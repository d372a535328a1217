// Accounts: how much of the core's memory leases and waiters take, in all and for each user, and
// whether one more fits. The core knows users by number only; 0 stands for nobody in particular,
// which is bounded by the totals alone.
//
//   if (const auto refused = accounts.check(user, bytes, Accounts::kLease)) …
//   accounts.add_waiter(user, bytes);  …  accounts.waiter_to_lease(user);
//   accounts.remove_lease(user, bytes);
//
// A request that waits has the place of its lease reserved: a grant is never refused for lack of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/limits.h"
#include "core/outputs.h"

namespace pawl::core {

// Of a user in the core; 0: nobody in particular.
using AccountId = std::uint16_t;

struct Usage {
  std::uint64_t leases = 0;  // Those that keep their locks closed for a DELAY as well.
  std::uint64_t waiters = 0;
  std::uint64_t bytes = 0;  // Of both.

  [[nodiscard]] std::uint64_t places() const { return leases + waiters; }
};

struct Quota {
  std::uint64_t leases = limits::kLeasesMax;
  std::uint64_t waiters = limits::kWaitersMax;
  std::uint64_t bytes = limits::kLeaseBytesMax;
};

class Accounts {
 public:
  Accounts(Quota in_all, Quota per_user) : in_all_(in_all), per_user_(per_user), users_(1) {}

  // What one more lease or waiter of this size would exceed; nothing when it fits.
  [[nodiscard]] std::optional<Refused> check(AccountId user, std::uint64_t bytes,
                                             bool waits) const {
    if (auto refused = check(total_, in_all_, bytes, waits)) return refused;
    if (user == 0 || user >= users_.size()) return std::nullopt;
    auto refused = check(users_[user], per_user_, bytes, waits);
    if (refused) refused->per_user = true;
    return refused;
  }
  void add_lease(AccountId user, std::uint64_t bytes) {
    for (Usage* usage : {&total_, &of(user)}) {
      ++usage->leases;
      usage->bytes += bytes;
    }
  }
  void remove_lease(AccountId user, std::uint64_t bytes) {
    for (Usage* usage : {&total_, &of(user)}) {
      PAWL_ASSERT(usage->leases > 0 && usage->bytes >= bytes);
      --usage->leases;
      usage->bytes -= bytes;
    }
  }
  void add_waiter(AccountId user, std::uint64_t bytes) {
    for (Usage* usage : {&total_, &of(user)}) {
      ++usage->waiters;
      usage->bytes += bytes;
    }
  }
  void remove_waiter(AccountId user, std::uint64_t bytes) {
    for (Usage* usage : {&total_, &of(user)}) {
      PAWL_ASSERT(usage->waiters > 0 && usage->bytes >= bytes);
      --usage->waiters;
      usage->bytes -= bytes;
    }
  }
  // A lease that was loaded belongs to nobody until its holder renews it.
  void adopt_lease(AccountId user, std::uint64_t bytes) {
    remove_lease(0, bytes);
    add_lease(user, bytes);
  }

  [[nodiscard]] const Usage& total() const { return total_; }
  [[nodiscard]] const Quota& in_all() const { return in_all_; }
  [[nodiscard]] const Quota& per_user() const { return per_user_; }
  // The most that any one user has of each.
  [[nodiscard]] Usage greatest() const {
    Usage most;
    for (std::size_t user = 1; user < users_.size(); ++user) {
      most.leases = std::max(most.leases, users_[user].places());
      most.waiters = std::max(most.waiters, users_[user].waiters);
      most.bytes = std::max(most.bytes, users_[user].bytes);
    }
    return most;
  }

 private:
  static std::optional<Refused> check(const Usage& usage, const Quota& quota, std::uint64_t bytes,
                                      bool waits) {
    using Why = Refused::Why;
    if (waits && usage.waiters >= quota.waiters)
      return Refused{.why = Why::kWaitersFull, .use = usage.waiters, .limit = quota.waiters};
    if (usage.places() >= quota.leases)
      return Refused{.why = Why::kLeasesFull, .use = usage.places(), .limit = quota.leases};
    if (usage.bytes + bytes > quota.bytes)
      return Refused{.why = Why::kLeaseBytesFull, .use = usage.bytes, .limit = quota.bytes};
    return std::nullopt;
  }
  Usage& of(AccountId user) {
    if (user >= users_.size()) users_.resize(std::size_t{user} + 1);
    return users_[user];
  }

  const Quota in_all_, per_user_;
  Usage total_;
  std::vector<Usage> users_;
};

}  // namespace pawl::core
