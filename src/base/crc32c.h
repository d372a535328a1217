// CRC-32C (Castagnoli), with the CPU's instruction where it has one.
#pragma once

#include <cstdint>
#include <string_view>

namespace pawl {

// Continues `seed` (0 to begin) over `bytes`.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);

}  // namespace pawl
