#include "base/hex.h"

namespace pawl {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

void write_word(std::uint64_t word, char* out) {
  for (int i = 15; i >= 0; --i) {
    out[i] = kDigits[word & 0xf];
    word >>= 4;
  }
}

constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 16; ++i) values[static_cast<unsigned char>(kDigits[i])] = i;
  return values;
}
constexpr auto kValues = make_values();

// No branch per digit: the digits of a lease are random, so every guess of the processor would be
// wrong half the time.
std::optional<std::uint64_t> read_word(std::string_view digits) {
  std::uint64_t word = 0;
  std::uint8_t seen = 0;
  for (const char c : digits) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    seen |= value;
    word = (word << 4) | (value & 0xfU);
  }
  if (seen > 0xf) return std::nullopt;
  return word;
}

}  // namespace

void write_hex(LeaseId lease, char* out) {
  write_word(lease.high, out);
  write_word(lease.low, out + 16);
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
  const auto high = read_word(digits.substr(0, 16));
  const auto low = read_word(digits.substr(16));
  if (!high || !low) return std::nullopt;
  return LeaseId{*high, *low};
}

std::optional<Incarnation> incarnation_from_hex(std::string_view digits) {
  if (digits.size() != kIncarnationDigits) return std::nullopt;
  const auto word = read_word(digits);
  if (!word) return std::nullopt;
  return Incarnation{*word};
}

}  // namespace pawl
