// The words of the guard contract, read back from what a resource answers. Their spelling is to_text() in pawl/guard.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pawl/guard.h"

namespace pawl::guard {

[[nodiscard]] std::optional<Verdict> parse_verdict(std::string_view text);
[[nodiscard]] std::optional<GuardMode> parse_mode(std::string_view text);
// 1 … 2^53 − 1 in decimal digits: no sign, no space, no leading zero. The one rule for tokens in text, everywhere.
[[nodiscard]] std::optional<std::uint64_t> parse_token(std::string_view text);

}  // namespace pawl::guard
