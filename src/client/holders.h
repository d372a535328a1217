// Who in this process holds what: how each holder hears of its lease, and whether somebody is about
// to wait for itself.
//
//   holders.add(lease, holder);
//   if (const auto own = holders.own(asker)) …the asking thread took that lease itself, and it stands in the way…
//
// pawld knows no reentry: a second acquire waits like everyone else's (hard case 16). Only the
// client can see that the one who waits is the one it waits for. What is seen here is which thread
// *took* a lease; where it was moved to since, nobody knows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "client/keeper.h"
#include "pawl/types.h"

namespace pawl::client {

// Of this process; never used twice, unlike what std::thread::id compares.
using ThreadNumber = Number<struct ThreadNumberTag>;
inline constexpr ThreadNumber kNoThread{0};  // asked for by a callback: whoever gets it

struct Holder {
  std::vector<std::string> locks = {};
  Mode mode = Mode::kExclusive;
  ThreadNumber thread = kNoThread;  // that took it
  Token token{};                    // once granted
  std::stop_source lost = {};
  std::function<void(LeaseState, const std::string&)> on_change = {};
};

class Holders {
 public:
  // Its locks, mode and thread stay as they are from now on.
  void add(LeaseNumber lease, std::shared_ptr<Holder> holder);
  void remove(LeaseNumber lease);
  // Nothing when it is not known (any more).
  [[nodiscard]] std::shared_ptr<Holder> find(LeaseNumber lease) const;

  // Leases that the same thread took and that keep `asker` from being granted for as long as they
  // are held.
  [[nodiscard]] std::vector<LeaseNumber> own(const Holder& asker) const;
  // Leases of this process, whoever took them, on any of these locks.
  [[nodiscard]] std::vector<LeaseNumber> on(const std::vector<std::string>& locks) const;

 private:
  std::unordered_map<LeaseNumber, std::shared_ptr<Holder>> holders_;
  std::unordered_multimap<std::string_view, LeaseNumber>
      by_lock_;  // the names are the holders' own
};

}  // namespace pawl::client
