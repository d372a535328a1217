#include "server/observation.h"

#include <algorithm>

#include "base/assert.h"

namespace pawl::server {

bool Observation::has(std::string_view prefix) const {
  return std::any_of(prefixes_.begin(), prefixes_.end(),
                     [&](const Prefix& p) { return p.text == prefix; });
}

void Observation::add(std::string_view prefix, Position start) {
  remove(prefix);
  prefixes_.push_back({std::string(prefix), start, start});
  find_next();
}

bool Observation::remove(std::string_view prefix) {
  const bool removed =
      std::erase_if(prefixes_, [&](const Prefix& p) { return p.text == prefix; }) != 0;
  find_next();
  return removed;
}

bool Observation::take(std::string_view lock) {
  PAWL_ASSERT(!empty());
  bool wanted = false, sent_already = false;
  for (Prefix& prefix : prefixes_) {
    if (prefix.next == next_) {
      ++prefix.next;
      wanted = wanted || prefix.matches(lock);
    } else if (prefix.start <= next_) {
      sent_already = sent_already || prefix.matches(lock);
    }
  }
  find_next();
  return wanted && !sent_already;
}

void Observation::find_next() {
  if (empty()) return;
  next_ =
      std::min_element(prefixes_.begin(), prefixes_.end(), [](const Prefix& a, const Prefix& b) {
        return a.next < b.next;
      })->next;
}

}  // namespace pawl::server
