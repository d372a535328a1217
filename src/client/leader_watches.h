// The leader watches of one client, and whom each tells. For the driver, under its lock; no I/O.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/leader_watch.h"

namespace pawl::client {

using WatchNumber = Number<struct WatchTag>;  // Never used twice.

class LeaderWatches {
 public:
  using Told = std::function<void(const Result<LeaderNow>&)>;
  // A change, and who is to hear of it.
  struct News {
    Told told;
    Result<LeaderNow> change;
  };

  explicit LeaderWatches(Machine& machine) : machine_(machine) {}

  WatchNumber add(std::string name, Told told, Instant now);
  void remove(WatchNumber number, Instant now);
  void remove_all(Instant now);

  // True: it was one of ours.
  bool take(const Completion& done, Instant now);
  // What there is to tell, in order, after the machine's sightings have been looked at.
  [[nodiscard]] std::vector<News> take_news(Instant now);

 private:
  struct Watch {
    LeaderWatch leader;
    Told told;
  };

  Machine& machine_;
  std::uint64_t last_number_ = 0;
  std::map<WatchNumber, Watch> watches_;
};

}  // namespace pawl::client
