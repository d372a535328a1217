// Cuts one input into pieces in three ways, chosen by the input itself, so that every run is
// reproducible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pawl::fuzz {

enum class Cut : std::uint8_t { kWhole, kBytes, kMixed };

// The size of the next piece of `rest` bytes, at least 1 when any are left.
class Chunks {
 public:
  Chunks(Cut cut, std::string_view bytes) : cut_(cut), state_(bytes.size() * 2654435761u + 1) {}

  std::size_t next(std::size_t rest) {
    if (cut_ == Cut::kWhole) return rest;
    if (cut_ == Cut::kBytes) return std::min<std::size_t>(rest, 1);
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return std::min<std::size_t>(rest, 1 + (state_ >> 33) % 23);
  }

 private:
  Cut cut_;
  std::uint64_t state_;
};

}  // namespace pawl::fuzz
