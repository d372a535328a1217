// The SQLSTATEs that a guard in a database refuses with: the same in PostgreSQL and in MariaDB.
#pragma once

namespace pawl::guard {

inline constexpr const char* kStateMissing = "PW001";
inline constexpr const char* kStateStale = "PW002";
inline constexpr const char* kStateMalformed = "PW003";
inline constexpr const char* kStateUnknownResource = "PW004";
inline constexpr const char* kStateAhead = "PW005";
inline constexpr const char* kStateIsolation = "PW006";
inline constexpr const char* kStateWaiting = "PW007";
inline constexpr const char* kStateDone = "PW008";

}  // namespace pawl::guard
