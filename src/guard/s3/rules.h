// What a guard in S3 decides: the verdict on a write, and the fence after it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/s3/envelope.h"
#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

struct S3Verdict {
  Verdict verdict = Verdict::kMissing;
  std::uint64_t max = 0;      // the fence it was compared with; 0: there was none
  bool let_through = false;   // neither admitted nor replayed, and applied all the same
  bool would_refuse = false;  // let through by a mode that judges and does not refuse

  [[nodiscard]] bool applies() const { return verdict == Verdict::kAdmitted || let_through; }
};

// `token` and `operation` are 0 when there is none.
[[nodiscard]] S3Verdict judge_s3_write(const S3Envelope& now, std::uint64_t token,
                                       std::uint64_t operation);
// The numbers alone, as an advance and a check are judged; let_through as a write would be.
[[nodiscard]] S3Verdict judge_s3_token(const S3Envelope& now, std::uint64_t token);

// The fence after an admitted write. What is let through moves none (rule 16).
void raise_s3_fence(S3Envelope& next, std::uint64_t token, std::uint64_t operation);

// For people, with the numbers in brackets; kStaleToken, or kInvalid for the others.
[[nodiscard]] Error explain_s3_refusal(const S3Envelope& now, const S3Verdict& verdict,
                                       std::uint64_t token, std::uint64_t operation);

// kInvalid says which rule a policy breaks.
[[nodiscard]] Result<void> check_s3_max_step(std::uint64_t max_step);

}  // namespace pawl::guard
