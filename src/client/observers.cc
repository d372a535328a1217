#include "client/observers.h"

#include <algorithm>

#include "client/observe_flow.h"

namespace pawl::client {

bool Observers::want(std::string_view prefix) const {
  return std::any_of(flows_.begin(), flows_.end(),
                     [&](const auto& entry) { return entry.second->prefix() == prefix; });
}

std::optional<wire::EventId> Observers::oldest(std::string_view prefix) const {
  std::optional<wire::EventId> oldest;
  for (const auto& [call, flow] : flows_) {
    if (flow->prefix() != prefix || !flow->last()) continue;
    if (!oldest || *flow->last() < *oldest) oldest = flow->last();
  }
  return oldest;
}

void Observers::tell(const wire::EventPush& event, std::uint64_t order) {
  for (const auto& [call, flow] : flows_) {
    if (flow->news(event)) sightings_.push_back({call, event, order});
  }
}

void Observers::forget(CallId call) {
  std::erase_if(sightings_, [&](const Sighting& sighting) { return sighting.call == call; });
}

}  // namespace pawl::client
