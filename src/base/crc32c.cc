#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace pawl {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr auto kTable = make_table();

std::uint32_t by_table(std::string_view bytes, std::uint32_t crc) {
  for (const char c : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::string_view bytes,
                                                               std::uint32_t crc) {
  std::uint64_t wide = crc;
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    wide = __builtin_ia32_crc32di(wide, word);
    bytes.remove_prefix(8);
  }
  return by_table(bytes, static_cast<std::uint32_t>(wide));
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(bytes, ~seed);
#endif
  return ~by_table(bytes, ~seed);
}

}  // namespace pawl
