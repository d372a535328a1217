// The cases, as data: each is a sentence, what a guard must be able to do for it to make sense, and
// the story that shows it. `pawl guard conformance --list` and docs/reference/conformance.md print
// this table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "conformance/subject.h"
#include "conformance/trial.h"

namespace pawl::conformance {

struct Case {
  std::string_view name;   // for --case: short, without spaces
  std::string_view claim;  // the sentence that is false of a guard that fails it
  void (*run)(Trial&);
  Abilities needs = {};   // all of these
  Abilities one_of = {};  // and one of these, when there are any
};

// By theme, one file each.
[[nodiscard]] std::span<const Case> verdict_cases();
[[nodiscard]] std::span<const Case> operation_cases();
[[nodiscard]] std::span<const Case> mode_cases();
[[nodiscard]] std::span<const Case> resource_cases();
[[nodiscard]] std::span<const Case> identity_cases();
[[nodiscard]] std::span<const Case> reader_cases();
[[nodiscard]] std::span<const Case> race_cases();
[[nodiscard]] std::span<const Case> crash_cases();

// All of them, in that order.
[[nodiscard]] std::vector<Case> all_cases();

}  // namespace pawl::conformance
