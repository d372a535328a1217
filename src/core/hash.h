// A seeded 64-bit hash of bytes. The seed is random in production: clients choose lock names, and
// must not be able to choose names that all fall into one bucket.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace pawl::core {

// Both halves of a 128-bit product, folded: one multiplication mixes all 64 bits of both sides.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  constexpr std::uint64_t kOdd1 = 0x9e3779b97f4a7c15;
  constexpr std::uint64_t kOdd2 = 0xd6e8feb86659fd93;
  std::uint64_t hash = fold(seed ^ kOdd1, bytes.size() ^ kOdd2);
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    hash = fold(hash ^ word, kOdd1);
    bytes.remove_prefix(8);
  }
  std::uint64_t tail = 0;
  if (!bytes.empty()) std::memcpy(&tail, bytes.data(), bytes.size());
  return fold(hash ^ tail ^ seed, kOdd2);
}

}  // namespace pawl::core
