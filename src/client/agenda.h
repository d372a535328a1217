// When each of many things is next due, earliest first: what lets a turn cost what is due, not what
// exists.
//
//   agenda.move(number, thing.due, at);       // thing.due is its place, kept with the thing; kNever: not planned
//   while (agenda.next() <= now) visit(agenda.first());    // the visit moves it
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "client/time.h"

namespace pawl::client {

template <class Number>
class Agenda {
 public:
  void move(Number number, Instant& place, Instant to) {
    if (place == to) return;
    if (place != kNever) entries_.erase({place, number});
    place = to;
    if (place != kNever) entries_.insert({place, number});
  }
  // kNever when there is nothing.
  [[nodiscard]] Instant next() const { return entries_.empty() ? kNever : entries_.begin()->first; }
  [[nodiscard]] Number first() const { return entries_.begin()->second; }
  // Those due at `now`; they keep their places.
  [[nodiscard]] std::vector<Number> due(Instant now) const {
    std::vector<Number> found;
    for (auto at = entries_.begin(); at != entries_.end() && at->first <= now; ++at)
      found.push_back(at->second);
    return found;
  }

 private:
  std::set<std::pair<Instant, Number>> entries_;
};

}  // namespace pawl::client
