#include "base/newcomers.h"

#include "base/assert.h"

namespace pawl {

std::optional<Newcomers::Id> Newcomers::add(Id id, Nanos now) {
  PAWL_ASSERT(!all_.contains(id));
  const std::optional<Id> gone = size() >= bounds_.most ? displace() : std::nullopt;
  const Nanos deadline = now + bounds_.patience;
  all_.emplace(id, Entry{deadline, false});
  silent_.emplace(deadline, id);
  return gone;
}

void Newcomers::set_waits_for_us(Id id, bool waits_for_us) {
  const auto found = all_.find(id);
  PAWL_ASSERT(found != all_.end());
  Entry& entry = found->second;
  if (entry.waits_for_us == waits_for_us) return;
  entry.waits_for_us = waits_for_us;
  Order& from = waits_for_us ? silent_ : busy_;
  Order& to = waits_for_us ? busy_ : silent_;
  from.erase({entry.deadline, id});
  to.emplace(entry.deadline, id);
}

bool Newcomers::waits_for_us(Id id) const {
  const auto found = all_.find(id);
  return found != all_.end() && found->second.waits_for_us;
}

std::optional<Newcomers::Id> Newcomers::next_late(Nanos now) {
  return next_deadline() <= now ? take_first(silent_) : std::nullopt;
}

std::optional<Newcomers::Id> Newcomers::displace() {
  return take_first(silent_.empty() ? busy_ : silent_);
}

std::optional<Newcomers::Id> Newcomers::displace_silent() {
  return take_first(silent_);
}

void Newcomers::remove(Id id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  (found->second.waits_for_us ? busy_ : silent_).erase({found->second.deadline, id});
  all_.erase(found);
}

Nanos Newcomers::next_deadline() const {
  return silent_.empty() ? Nanos::max() : silent_.begin()->first;
}

std::optional<Newcomers::Id> Newcomers::take_first(const Order& order) {
  if (order.empty()) return std::nullopt;
  const Id id = order.begin()->second;
  remove(id);
  return id;
}

}  // namespace pawl
