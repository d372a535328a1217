// What one connection observes: its prefixes, and how far the events of each were sent.
//
//   observation.add("elections/", ring.end());
//   while (observation.next() < ring.end()) {
//     const Position p = observation.next();
//     if (observation.take(ring.lock_at(p))) send(ring.at(p));
//   }
//
// Each event is sent once, however many prefixes it matches, and in order; for a prefix that is
// added with an older FROM, what it missed is sent before the others go on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/event_ring.h"

namespace pawl::server {

class Observation {
 public:
  using Position = EventRing::Position;

  [[nodiscard]] bool has(std::string_view prefix) const;
  [[nodiscard]] std::size_t prefixes() const { return prefixes_.size(); }
  [[nodiscard]] bool empty() const { return prefixes_.empty(); }
  // From `start` on; anew when it is observed already.
  void add(std::string_view prefix, Position start);
  // False when it was not observed.
  bool remove(std::string_view prefix);

  // The event to look at next. Not when empty().
  [[nodiscard]] Position next() const { return next_; }
  // Whether that event, about `lock`, is to be sent; then next() moves on. An empty name concerns
  // everyone.
  bool take(std::string_view lock);

 private:
  struct Prefix {
    std::string text;
    Position start;  // what matches in [start, next) was sent
    Position next;
    [[nodiscard]] bool matches(std::string_view lock) const {
      return lock.empty() || lock.starts_with(text);
    }
  };
  void find_next();

  std::vector<Prefix> prefixes_;
  Position next_ = 0;  // the least of theirs
};

}  // namespace pawl::server
