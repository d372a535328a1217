// Runs cases against a subject.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/cases.h"
#include "conformance/subject.h"

namespace pawl::conformance {

struct RunOptions {
  std::vector<std::string> cases;  // by name; empty: all
  std::uint64_t seed = 1;
  std::uint64_t rounds = 25;  // of each racer in each race
};

enum class CaseEnd : std::uint8_t { kPassed, kFailed, kNotApplicable };
[[nodiscard]] std::string_view to_text(CaseEnd end);

struct CaseResult {
  Case ran;
  CaseEnd end = CaseEnd::kPassed;
  std::string why;  // what was seen, or which ability is missing
};

struct Report {
  std::string subject;
  std::uint64_t seed = 0;
  std::vector<CaseResult> results;

  [[nodiscard]] std::size_t count(CaseEnd end) const;
};

// Passes each result to `report_case` as it comes. Names in `options.cases` must be known: see
// find_unknown().
[[nodiscard]] Report run(Subject& subject, const RunOptions& options,
                         const std::function<void(const CaseResult&)>& report_case);
// The first name that is no case's; empty: all are known.
[[nodiscard]] std::string find_unknown(const std::vector<std::string>& names);

}  // namespace pawl::conformance
