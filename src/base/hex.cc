#include "base/hex.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace pawl {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read from text as they are");

constexpr char kDigits[] = "0123456789abcdef";
constexpr std::size_t kWordDigits = 16;

// "00", "01" … "ff", one after the other.
constexpr std::array<char, 512> make_pairs() {
  std::array<char, 512> pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = kDigits[byte >> 4];
    pairs[2 * byte + 1] = kDigits[byte & 0xf];
  }
  return pairs;
}
constexpr auto kPairs = make_pairs();

void write_word(std::uint64_t word, char* out) {
  for (char* at = out + kWordDigits; at != out; word >>= 8) {
    at -= 2;
    std::memcpy(at, &kPairs[2 * (word & 0xff)], 2);
  }
}

constexpr std::uint64_t kEveryByte = 0x0101010101010101;

// Eight digits at once, one byte each, and without a branch per digit: the digits of a lease are
// random, so every guess of the processor would be wrong half the time. Nothing unless all of them
// are digits: writing the value must give the same text again.
std::optional<std::uint32_t> read_half(const char* digits) {
  std::uint64_t text = 0;
  std::memcpy(&text, digits, sizeof(text));
  const std::uint64_t letters = (text >> 6) & kEveryByte;  // 'a' to 'f' are 0x61 to 0x66
  std::uint64_t value = (text & (0x0f * kEveryByte)) + 9 * letters;
  const std::uint64_t above_nine = ((value + 6 * kEveryByte) >> 4) & kEveryByte;
  const std::uint64_t written = value + '0' * kEveryByte + ('a' - '0' - 10) * above_nine;
  if (written != text || (value & (0xf0 * kEveryByte)) != 0) return std::nullopt;
  value = __builtin_bswap64(value);  // The first digit is the greatest.
  value = (value | value >> 4) & 0x00ff00ff00ff00ff;
  value = (value | value >> 8) & 0x0000ffff0000ffff;
  return static_cast<std::uint32_t>(value | value >> 16);
}

std::optional<std::uint64_t> read_word(const char* digits) {
  const auto high = read_half(digits);
  const auto low = read_half(digits + kWordDigits / 2);
  if (!high || !low) return std::nullopt;
  return std::uint64_t{*high} << 32 | *low;
}

}  // namespace

void write_hex(LeaseId lease, char* out) {
  write_word(lease.high, out);
  write_word(lease.low, out + kWordDigits);
}

std::string to_hex(LeaseId lease) {
  std::string text(kLeaseDigits, '0');
  write_hex(lease, text.data());
  return text;
}

std::string to_hex(Incarnation incarnation) {
  std::string text(kIncarnationDigits, '0');
  write_word(incarnation.value, text.data());
  return text;
}

std::optional<LeaseId> lease_from_hex(std::string_view digits) {
  if (digits.size() != kLeaseDigits) return std::nullopt;
  const auto high = read_word(digits.data());
  const auto low = read_word(digits.data() + kWordDigits);
  if (!high || !low) return std::nullopt;
  return LeaseId{*high, *low};
}

std::optional<Incarnation> incarnation_from_hex(std::string_view digits) {
  if (digits.size() != kIncarnationDigits) return std::nullopt;
  const auto word = read_word(digits.data());
  if (!word) return std::nullopt;
  return Incarnation{*word};
}

}  // namespace pawl
