#include "guard/sql/states.h"

#include "guard_contract/parse.h"

namespace pawl::guard {

Result<Decision> to_decision(const CheckedRow& row, std::uint64_t token) {
  const auto verdict = parse_verdict(row.verdict);
  const auto mode = parse_mode(row.mode);
  if (!verdict || !mode)
    return Error{Code::kInvalid,
                 "the installed guard returned a verdict or mode that this libpawl does not know"};
  Decision decision{.verdict = *verdict, .token = token, .mode = *mode};
  decision.max = parse_token(row.max).value_or(0);
  const bool refuses =
      *mode != GuardMode::kObserve && *mode != GuardMode::kShadow && row.would_refuse;
  decision.let_through = *verdict > Verdict::kReplayed && !refuses;
  return decision;
}

}  // namespace pawl::guard
