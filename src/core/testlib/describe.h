// Replies, events and views as one line of text each: for traces of failing tests, and to compare
// what two sides say.
#pragma once

#include <string>
#include <vector>

#include "core/outputs.h"
#include "core/views.h"

namespace pawl::core {

[[nodiscard]] std::string describe(LeaseId lease);
[[nodiscard]] std::string describe(const Outcome& outcome);
[[nodiscard]] std::string describe(
    const Reply& reply);  // without `after`, which only the caller can judge
[[nodiscard]] std::string describe(const Output& output, const Event& event);  // without times
[[nodiscard]] std::string describe(const HolderView& holder);
[[nodiscard]] std::string describe(const LockView& view);
[[nodiscard]] std::string describe(const EpochView& epoch);
[[nodiscard]] std::string describe(const Totals& totals);

}  // namespace pawl::core
