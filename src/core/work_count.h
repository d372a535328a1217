// WorkCount: how many nodes (holders, places of a queue, slots, epochs) were visited. Reads count
// too, so that the caller can bound what one turn costs by what was done and not by a clock: the
// same inputs always cost the same.
#pragma once

#include <cstdint>

namespace pawl::core {

class WorkCount {
 public:
  void add(std::uint64_t nodes = 1) const { nodes_ += nodes; }
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

 private:
  mutable std::uint64_t nodes_ = 0;  // A count changes no answer.
};

}  // namespace pawl::core
