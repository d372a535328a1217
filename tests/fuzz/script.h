// Reads decisions off a fuzzer's bytes. Past the end every decision is 0, so that a prefix of an
// input is an input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pawl::fuzz {

class Script {
 public:
  explicit Script(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool done() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() {
    return done() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::size_t below(std::size_t bound) { return byte() % bound; }
  std::uint16_t word() {
    const unsigned high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  template <class T, std::size_t kSize>
  const T& one_of(const std::array<T, kSize>& choices) {
    return choices[below(kSize)];
  }
  // At most `size` bytes as they are.
  std::string_view bytes(std::size_t size) {
    const std::string_view taken = bytes_.substr(at_ < bytes_.size() ? at_ : bytes_.size(), size);
    at_ += taken.size();
    return taken;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace pawl::fuzz
