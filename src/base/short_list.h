// ShortList: a list with inline storage, for the short lists of one request. Nothing is allocated
// on the hot path, and the capacity is a limit that the caller has checked.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/assert.h"

namespace pawl {

template <class T, std::size_t kCapacity>
class ShortList {
 public:
  // Must not be full().
  void push_back(T item) {
    PAWL_ASSERT(size_ < kCapacity);
    items_[size_++] = item;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == kCapacity; }
  const T& operator[](std::size_t i) const {
    PAWL_ASSERT(i < size_);
    return items_[i];
  }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] const T* begin() const { return items_.data(); }
  [[nodiscard]] const T* end() const { return items_.data() + size_; }
  [[nodiscard]] bool contains(const T& item) const {
    return std::find(begin(), end(), item) != end();
  }

 private:
  std::array<T, kCapacity> items_;
  std::size_t size_ = 0;
};

}  // namespace pawl
