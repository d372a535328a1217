// All fences of a gate, by resource, with what they have to do at which time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/boot_time.h"
#include "gate/fence.h"
#include "pawl/result.h"

namespace pawl::gate {

// A fence and the name of its resource. Its address stays the same.
struct NamedFence {
  NamedFence(std::string its_name, const FenceSettings& settings, Mark recovered)
      : name(std::move(its_name)), fence(settings, recovered) {}
  const std::string name;
  Fence fence;
  std::optional<Instant> scheduled = {};  // used by Fences only
};

class Fences {
 public:
  Fences(const FenceSettings& settings, std::size_t resources_max)
      : settings_(settings), resources_max_(resources_max) {}

  // At the start. May exceed the limit: what is on disk counts, whatever the limit says.
  void recover(const std::string& name, Mark mark);
  // nullptr: no token was ever seen for this resource.
  [[nodiscard]] NamedFence* find(std::string_view name);
  // kBusy when there are too many resources.
  [[nodiscard]] Result<NamedFence*> find_or_add(std::string_view name);
  // After each call of a method of `fence`: its next time may have changed.
  void reschedule(NamedFence& fence);
  // One fence whose time has come; nullptr: none.
  [[nodiscard]] NamedFence* due(Instant now);
  [[nodiscard]] std::optional<Instant> next_time() const;

  [[nodiscard]] std::size_t size() const { return fences_.size(); }
  void for_each(const std::function<void(NamedFence&)>& visit);

 private:
  const FenceSettings& settings_;
  const std::size_t resources_max_;
  std::map<std::string, std::unique_ptr<NamedFence>, std::less<>> fences_;
  std::set<std::pair<Instant, NamedFence*>> times_;
};

}  // namespace pawl::gate
