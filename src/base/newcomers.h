// Newcomers: connections of unknown peers, which have yet to finish a TLS handshake or to
// authenticate. They are bounded in number and in time, so that strangers can neither take the
// places of clients nor hold memory. Knows no socket and no clock.
//
//   Newcomers newcomers({.most = 1024, .patience = 10s, .random = &random});
//   if (const auto gone = newcomers.add(id, now)) …close `gone`: there were too many…
//   newcomers.set_waits_for_us(id, true);                     // its input is here, and not served
//   while (const auto late = newcomers.next_late(now)) …close it…
//   newcomers.remove(id);                                     // it has authenticated, or closed
//
// When there are too many, one goes that waits for its peer; only if all wait for us, one of these:
// a peer that talks without ever authenticating must not keep others out. With a source of random
// numbers it is any of them. If it were always the oldest, a peer that needs longer than strangers
// need to fill all places would never get in, however often it tries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/types.h"

namespace pawl {

class Newcomers {
 public:
  using Id = std::uint64_t;
  struct Bounds {
    std::size_t most;
    Nanos patience;
    Random* random = nullptr;  // nullptr: the oldest goes
  };
  explicit Newcomers(Bounds bounds) : bounds_(bounds) {}

  // `id` is not one of them yet. Returns the one to close in its stead, which is forgotten here, if
  // there are too many. `now` never goes back.
  [[nodiscard]] std::optional<Id> add(Id id, Nanos now);
  // Whether it is our turn to do something. At first each waits for its peer.
  void set_waits_for_us(Id id, bool waits_for_us);
  // One whose time is over and that waits for its peer; it is forgotten here.
  [[nodiscard]] std::optional<Id> next_late(Nanos now);
  // The one that has to go next; it is forgotten here. Nothing: there is none.
  [[nodiscard]] std::optional<Id> displace();
  // The same, but only one that waits for its peer.
  [[nodiscard]] std::optional<Id> displace_silent();
  // Nothing happens if it is not one of them.
  void remove(Id id);

  [[nodiscard]] bool contains(Id id) const { return all_.contains(id); }
  [[nodiscard]] bool waits_for_us(Id id) const;
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  // As many as there may be, and each waits for us.
  [[nodiscard]] bool all_wait_for_us() const { return size() >= bounds_.most && silent_.empty(); }
  [[nodiscard]] bool any_waits_for_us() const { return !busy_.empty(); }
  // When the next one is late; Nanos::max() if none waits for its peer.
  [[nodiscard]] Nanos next_deadline() const;
  [[nodiscard]] const Bounds& bounds() const { return bounds_; }

 private:
  struct Entry {
    Nanos deadline{};
    bool waits_for_us = false;
    std::size_t index = 0;  // in `ids` of its group
  };
  struct Group {
    std::set<std::pair<Nanos, Id>> order;  // of arrival, as all have the same patience
    std::vector<Id> ids;                   // in no order, to draw one
    [[nodiscard]] bool empty() const { return ids.empty(); }
  };
  void insert(Group& group, Id id, Entry& entry);
  void erase(Group& group, Id id, const Entry& entry);
  std::optional<Id> take(std::optional<Id> id);
  [[nodiscard]] std::optional<Id> choose(const Group& group);

  const Bounds bounds_;
  std::unordered_map<Id, Entry> all_;
  Group silent_, busy_;  // those that wait for their peer, and those that wait for us
};

}  // namespace pawl
