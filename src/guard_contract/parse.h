// Reads the words of the guard contract back from what a resource answers. to_text() in
// pawl/guard.h spells them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

[[nodiscard]] std::optional<Verdict> parse_verdict(std::string_view text);
[[nodiscard]] std::optional<GuardMode> parse_mode(std::string_view text);
// 1 … 2^53 − 1 in decimal digits: no sign, no space, no leading zero. The only rule for tokens in
// text, everywhere.
[[nodiscard]] std::optional<std::uint64_t> parse_token(std::string_view text);
// The number behind `key=` in a refusal such as `token=33 max=34 mode=enforce` (it may be in
// brackets). 0: there is no such field.
[[nodiscard]] std::uint64_t parse_field(std::string_view text, std::string_view key);

// kInvalid unless an installed guard keeps exactly the contract of this libpawl. Both arguments are
// as the installed guard spells them.
[[nodiscard]] Result<void> check_contract_version(std::string_view contract,
                                                  std::string_view version);

}  // namespace pawl::guard
