// The leases that this process holds: how to notify each holder, and whether a thread is about to
// wait for a lease of its own.
//
//   holders.add(lease, holder);
//   if (!holders.held_by_same_thread(request).empty()) refuse();  // it would wait for itself
//
// pawld has no reentry: a second acquire waits like any other (hard case 16). Only the client can
// see that the waiting thread is the one that it waits for. It knows which thread *acquired* a
// lease, not where the lease was moved to since.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "client/keeper.h"
#include "client/listener.h"
#include "pawl/types.h"

namespace pawl::client {

// Of this process; never used twice, unlike std::thread::id.
using ThreadNumber = Number<struct ThreadNumberTag>;
inline constexpr ThreadNumber kNoThread{0};  // acquire_async(): not bound to a thread

struct Holder {
  std::vector<std::string> locks = {};
  Mode mode = Mode::kExclusive;
  ThreadNumber thread = kNoThread;  // that acquired it
  Token token{};                    // once granted
  std::stop_source lost = {};
  bool notified = false;  // `lost` was, or is about to be, requested to stop
  std::shared_ptr<Listener<LeaseState, const std::string&>> on_change = {};  // may be empty
  // Under the lock of the driver.
  std::shared_ptr<Listener<const ReleaseWanted&>> on_release_wanted = {};  // may be empty
  std::optional<ReleaseWanted> unheard = {};  // came while there was no on_release_wanted
};

class Holders {
 public:
  // The holder's locks, mode and thread must not change any more.
  void add(LeaseNumber lease, std::shared_ptr<Holder> holder);
  void remove(LeaseNumber lease);
  // nullptr when it is not known (any more).
  [[nodiscard]] std::shared_ptr<Holder> find(LeaseNumber lease) const;

  // Leases that the thread of `request` acquired, and that exclude `request` while they are held.
  [[nodiscard]] std::vector<LeaseNumber> held_by_same_thread(const Holder& request) const;
  // All leases of this process on any of these locks.
  [[nodiscard]] std::vector<LeaseNumber> on_locks(const std::vector<std::string>& locks) const;

 private:
  std::unordered_map<LeaseNumber, std::shared_ptr<Holder>> holders_;
  // The names are owned by the holders.
  std::unordered_multimap<std::string_view, LeaseNumber> by_lock_;
};

}  // namespace pawl::client
