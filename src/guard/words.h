// The words of the guard contract, read back from what a resource answers. Their spelling is
// to_text() in pawl/guard.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

[[nodiscard]] std::optional<Verdict> parse_verdict(std::string_view text);
[[nodiscard]] std::optional<GuardMode> parse_mode(std::string_view text);
// 1 … 2^53 − 1 in decimal digits: no sign, no space, no leading zero. The one rule for tokens in
// text, everywhere.
[[nodiscard]] std::optional<std::uint64_t> parse_token(std::string_view text);
// A number that a refusal tells, as in `token=33 max=34 mode=enforce` (perhaps in brackets); 0: it
// does not.
[[nodiscard]] std::uint64_t number_told(std::string_view text, std::string_view key);

// What a guard in a database answers to check().
struct CheckedRow {
  std::string_view verdict;
  std::string_view max;
  std::string_view mode;
  bool would_refuse = true;  // in mode enforce
};
[[nodiscard]] Result<Decision> to_decision(const CheckedRow& row, std::uint64_t token);

// Whether we may talk to an installed guard; its contract as it spells it.
[[nodiscard]] Result<void> insist_on_contract(std::string_view contract, std::string_view version);

}  // namespace pawl::guard
