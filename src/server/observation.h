// What one connection observes: its prefixes, and how far each has been told.
//
//   observation.add("elections/", ring.end());
//   while (observation.next() < ring.end()) {
//     const Position p = observation.next();
//     if (observation.take(ring.lock_at(p))) tell(ring.at(p));
//   }
//
// Each event is told once, however many prefixes it matches, and in order; a prefix that is added
// with an older FROM is told what it missed before the others go on.
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
  // Whether that event, about `lock`, is to be told; then it is behind us. An empty name concerns
  // everyone.
  bool take(std::string_view lock);

 private:
  struct Prefix {
    std::string text;
    Position start;  // it has been told what matches in [start, next)
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
