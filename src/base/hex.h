// Leases as 32 lowercase hex digits, and back; incarnations as 16.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace pawl {

inline constexpr std::size_t kLeaseDigits = 32;
inline constexpr std::size_t kIncarnationDigits = 16;

// Writes exactly 32 digits at `out`.
void write_hex(LeaseId lease, char* out);
[[nodiscard]] std::string to_hex(LeaseId lease);
[[nodiscard]] std::string to_hex(Incarnation incarnation);

// Nothing unless `digits` are exactly 32 lowercase hex digits.
[[nodiscard]] std::optional<LeaseId> lease_from_hex(std::string_view digits);
// Nothing unless they are exactly 16.
[[nodiscard]] std::optional<Incarnation> incarnation_from_hex(std::string_view digits);

}  // namespace pawl
