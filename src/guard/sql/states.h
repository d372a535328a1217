// What a guard in a database answers, in PostgreSQL and in MariaDB alike: SQLSTATEs of its own for
// refusals, and a row for check(). Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

inline constexpr const char* kStateMissing = "PW001";
inline constexpr const char* kStateStale = "PW002";
inline constexpr const char* kStateMalformed = "PW003";
inline constexpr const char* kStateUnknownResource = "PW004";
inline constexpr const char* kStateAhead = "PW005";
inline constexpr const char* kStateIsolation = "PW006";
inline constexpr const char* kStateWaiting = "PW007";
inline constexpr const char* kStateDone = "PW008";

// A row of check(), as text.
struct CheckedRow {
  std::string_view verdict;
  std::string_view max;
  std::string_view mode;
  bool would_refuse = true;  // in mode enforce
};
[[nodiscard]] Result<Decision> to_decision(const CheckedRow& row, std::uint64_t token);

}  // namespace pawl::guard
