// QueueRanks: how many stand before each place of a long queue, in O(log n). A Fenwick tree over
// the order of arrival: joining appends, leaving leaves a gap.
//
//   place.number = ranks.append();  …  ranks.rank(place.number) == 1 for the head
//   ranks.remove(place.number);  if (ranks.sparse()) build it again without the gaps
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace pawl::core {

class QueueRanks {
 public:
  // Behind all others. The number is that of the new place, until the ranks are built again.
  std::uint32_t append() {
    const auto number = static_cast<std::uint32_t>(sums_.size());
    PAWL_ASSERT(number != 0);
    std::uint32_t sum = 1;
    const std::uint32_t first = number - lowest_bit(number);
    for (std::uint32_t i = number - 1; i > first; i -= lowest_bit(i)) sum += sums_[i];
    sums_.push_back(sum);
    ++size_;
    return number;
  }
  void remove(std::uint32_t number) {
    PAWL_ASSERT(number > 0 && number < sums_.size() && size_ > 0);
    for (std::size_t i = number; i < sums_.size(); i += lowest_bit(static_cast<std::uint32_t>(i)))
      --sums_[i];
    --size_;
  }
  // Its position: 1 = the head.
  [[nodiscard]] std::uint64_t rank(std::uint32_t number) const {
    std::uint64_t before = 0;
    for (std::uint32_t i = number; i > 0; i -= lowest_bit(i)) before += sums_[i];
    return before;
  }
  // More gaps than places: building it again is paid for by those that left.
  [[nodiscard]] bool sparse() const { return sums_.size() > 2 * std::size_t{size_} + 64; }

 private:
  static std::uint32_t lowest_bit(std::uint32_t i) { return i & (~i + 1); }

  // At i: how many of the numbers (i - lowest_bit(i), i] still stand. 0 is not used.
  std::vector<std::uint32_t> sums_{0};
  std::uint32_t size_ = 0;
};

}  // namespace pawl::core
