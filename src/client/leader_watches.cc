#include "client/leader_watches.h"

namespace pawl::client {

WatchNumber LeaderWatches::add(std::string name, Told told, Instant now) {
  const WatchNumber number{++last_number_};
  watches_.emplace(number, Watch{LeaderWatch(machine_, std::move(name), now), std::move(told)});
  return number;
}

void LeaderWatches::remove(WatchNumber number, Instant now) {
  const auto found = watches_.find(number);
  if (found == watches_.end()) return;
  found->second.leader.stop(now);
  watches_.erase(found);
}

void LeaderWatches::remove_all(Instant now) {
  while (!watches_.empty()) remove(watches_.begin()->first, now);
}

bool LeaderWatches::take(const Completion& done, Instant now) {
  for (auto& [number, watch] : watches_) {
    if (watch.leader.take(done, now)) return true;
  }
  return false;
}

std::vector<LeaderWatches::News> LeaderWatches::take_news(Instant now) {
  std::vector<News> news;
  if (watches_.empty()) return news;
  for (const Sighting& seen : machine_.take_sightings()) {
    for (auto& [number, watch] : watches_) {
      if (watch.leader.take(seen, now)) break;
    }
  }
  for (auto at = watches_.begin(); at != watches_.end();) {
    auto& [number, watch] = *at;
    bool over = false;
    for (auto& change : watch.leader.take_changes()) {
      over = !change.has_value();
      news.push_back({watch.told, std::move(change)});
    }
    at = over ? watches_.erase(at) : std::next(at);
  }
  return news;
}

}  // namespace pawl::client
