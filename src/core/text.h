// Text: an owned byte string in eight bytes plus one exact allocation. A million leases keep a name
// and an owner each; std::string would spend 32 bytes on every one before the first letter.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/assert.h"

namespace pawl::core {

class Text {
 public:
  Text() = default;
  // Copies; at most 65535 bytes.
  explicit Text(std::string_view text) {
    if (text.empty()) return;
    PAWL_ASSERT(text.size() <= UINT16_MAX);
    const auto size = static_cast<std::uint16_t>(text.size());
    bytes_ = std::make_unique_for_overwrite<char[]>(sizeof(size) + size);
    std::memcpy(bytes_.get(), &size, sizeof(size));
    std::memcpy(bytes_.get() + sizeof(size), text.data(), size);
  }

  // Valid until this is destroyed or assigned; moving does not move the bytes.
  [[nodiscard]] std::string_view view() const {
    if (bytes_ == nullptr) return {};
    std::uint16_t size = 0;
    std::memcpy(&size, bytes_.get(), sizeof(size));
    return {bytes_.get() + sizeof(size), size};
  }
  [[nodiscard]] bool empty() const { return bytes_ == nullptr; }

 private:
  std::unique_ptr<char[]> bytes_;  // u16 length, then the bytes; null when empty
};

}  // namespace pawl::core
