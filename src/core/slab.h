// Slab<T>: items at addresses and 32-bit indices that never move while they live; freed indices are
// used again. It grows by chunks, so that growing copies nothing and a million items leave no
// doubled vector behind.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/assert.h"

namespace pawl::core {

using Index = std::uint32_t;
inline constexpr Index kNone = UINT32_MAX;

template <class T>
class Slab {
 public:
  // A default item, at an index that is free.
  Index add() {
    ++size_;
    if (!free_.empty()) {
      const Index index = free_.back();
      free_.pop_back();
      return index;
    }
    if (end_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
    PAWL_ASSERT(end_ < kNone);
    return end_++;
  }
  // Resets the item and frees its index, which must be in use.
  void remove(Index index) {
    PAWL_ASSERT(index < end_ && size_ > 0);
    (*this)[index] = T{};
    free_.push_back(index);
    --size_;
  }
  T& operator[](Index index) { return chunks_[index / kChunk][index % kChunk]; }
  const T& operator[](Index index) const { return chunks_[index / kChunk][index % kChunk]; }

  [[nodiscard]] std::size_t size() const { return size_; }
  // One past the greatest index ever used: for scans, which must skip what is not in use.
  [[nodiscard]] Index end() const { return end_; }

 private:
  static constexpr std::size_t kChunk = 1024;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<Index> free_;
  std::size_t size_ = 0;
  Index end_ = 0;
};

}  // namespace pawl::core
