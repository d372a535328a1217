#include "base/newcomers.h"

#include "base/assert.h"

namespace pawl {

std::optional<Newcomers::Id> Newcomers::add(Id id, Nanos now) {
  PAWL_ASSERT(!all_.contains(id));
  const std::optional<Id> gone = size() >= bounds_.most ? displace() : std::nullopt;
  insert(silent_, id, all_.emplace(id, Entry{now + bounds_.patience}).first->second);
  return gone;
}

void Newcomers::set_waits_for_us(Id id, bool waits_for_us) {
  const auto found = all_.find(id);
  PAWL_ASSERT(found != all_.end());
  Entry& entry = found->second;
  if (entry.waits_for_us == waits_for_us) return;
  entry.waits_for_us = waits_for_us;
  erase(waits_for_us ? silent_ : busy_, id, entry);
  insert(waits_for_us ? busy_ : silent_, id, entry);
}

bool Newcomers::waits_for_us(Id id) const {
  const auto found = all_.find(id);
  return found != all_.end() && found->second.waits_for_us;
}

std::optional<Newcomers::Id> Newcomers::next_late(Nanos now) {
  return next_deadline() <= now ? take(silent_.order.begin()->second) : std::nullopt;
}

std::optional<Newcomers::Id> Newcomers::displace() {
  return take(choose(silent_.empty() ? busy_ : silent_));
}

std::optional<Newcomers::Id> Newcomers::displace_silent() {
  return take(choose(silent_));
}

void Newcomers::remove(Id id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  erase(found->second.waits_for_us ? busy_ : silent_, id, found->second);
  all_.erase(found);
}

Nanos Newcomers::next_deadline() const {
  return silent_.empty() ? Nanos::max() : silent_.order.begin()->first;
}

void Newcomers::insert(Group& group, Id id, Entry& entry) {
  entry.index = group.ids.size();
  group.ids.push_back(id);
  group.order.emplace(entry.deadline, id);
}

// The last one takes its index.
void Newcomers::erase(Group& group, Id id, const Entry& entry) {
  group.order.erase({entry.deadline, id});
  const Id last = group.ids.back();
  group.ids[entry.index] = last;
  all_.at(last).index = entry.index;
  group.ids.pop_back();
}

std::optional<Newcomers::Id> Newcomers::choose(const Group& group) {
  if (group.empty()) return std::nullopt;
  if (bounds_.random == nullptr) return group.order.begin()->second;
  return group.ids[bounds_.random->below(group.ids.size())];
}

std::optional<Newcomers::Id> Newcomers::take(std::optional<Id> id) {
  if (id) remove(*id);
  return id;
}

}  // namespace pawl
