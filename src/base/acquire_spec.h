// What a caller asks for when it acquires: parsed by wire, decided by core, written by client.
//
// Views point into the caller's bytes and are valid only for the call; whoever keeps one copies it.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/assert.h"
#include "base/limits.h"
#include "base/types.h"

namespace pawl {

// A list with inline storage, for the short lists of one request: nothing is allocated on the hot
// path.
template <class T, std::size_t kCapacity>
class ShortList {
 public:
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

struct MetaPair {
  std::string_view key;
  std::string_view value;
  bool operator==(const MetaPair&) const = default;
};

struct AcquireSpec {
  ShortList<std::string_view, limits::kLocksPerLease> locks;  // distinct, in the caller's order
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;  // 1 unless mode is kLimit
  Millis ttl{0};
  Millis wait{0};  // 0 = do not wait
  bool async = false;
  std::string_view owner;
  std::string_view request;  // empty = none
  Millis delay{0};
  Millis max_hold{0};  // 0 = no cap
  ShortList<MetaPair, limits::kMetaPairs> meta;
};

}  // namespace pawl
