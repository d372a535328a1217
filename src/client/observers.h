// Who observes what on the machine's one connection. pawld tells each event once per connection,
// however many prefixes it matches; here it reaches every observation that it concerns.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client/calls.h"

namespace pawl::client {

class ObserveFlow;

class Observers {
 public:
  void add(CallId call, ObserveFlow& flow) { flows_.emplace(call, &flow); }
  void remove(CallId call) { flows_.erase(call); }
  // Whether anyone (still) observes just this prefix: then nobody else may end it.
  [[nodiscard]] bool want(std::string_view prefix) const;

  // The event from which all of those who have begun with this prefix can go on.
  [[nodiscard]] std::optional<wire::EventId> oldest(std::string_view prefix) const;

  void tell(const wire::EventPush& event, std::uint64_t order);
  void tell(Sighting sighting) { sightings_.push_back(std::move(sighting)); }
  [[nodiscard]] std::vector<Sighting> take() { return std::exchange(sightings_, {}); }
  // What it has told and nobody has taken yet.
  void forget(CallId call);

 private:
  std::map<CallId, ObserveFlow*> flows_;
  std::vector<Sighting> sightings_;
};

}  // namespace pawl::client
