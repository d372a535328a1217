#include "gate/fences.h"

#include <fmt/format.h>

namespace pawl::gate {

void Fences::recover(const std::string& name, Mark mark) {
  auto& fence = fences_[name];
  fence = std::make_unique<NamedFence>(name, settings_, mark);
  reschedule(*fence);
}

NamedFence* Fences::find(std::string_view name) {
  const auto found = fences_.find(name);
  return found == fences_.end() ? nullptr : found->second.get();
}

Result<NamedFence*> Fences::find_or_add(std::string_view name) {
  if (NamedFence* known = find(name)) return known;
  if (fences_.size() >= resources_max_) {
    return Error{Code::kBusy,
                 fmt::format("the gate remembers the fences of {} resources, which is its limit",
                             resources_max_)};
  }
  auto& fence = fences_[std::string(name)];
  fence = std::make_unique<NamedFence>(std::string(name), settings_, Mark{});
  return fence.get();
}

void Fences::reschedule(NamedFence& fence) {
  const auto next = fence.fence.next_time();
  if (next == fence.scheduled) return;
  if (fence.scheduled) times_.erase({*fence.scheduled, &fence});
  if (next) times_.insert({*next, &fence});
  fence.scheduled = next;
}

NamedFence* Fences::due(Instant now) {
  if (times_.empty() || times_.begin()->first > now) return nullptr;
  return times_.begin()->second;
}

std::optional<Instant> Fences::next_time() const {
  if (times_.empty()) return std::nullopt;
  return times_.begin()->first;
}

void Fences::for_each(const std::function<void(NamedFence&)>& visit) {
  for (auto& [name, fence] : fences_) visit(*fence);
}

}  // namespace pawl::gate
