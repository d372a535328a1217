// How pawld ends; pinned, because service managers act on them (sysexits.h).
#pragma once

#include "pawl/result.h"

namespace pawl::pawld {

inline constexpr int kExitOk = 0;      // a clean stop
inline constexpr int kExitUsage = 64;  // the command line
inline constexpr int kExitStore = 74;  // the store failed; a restart may help
inline constexpr int kExitConfig =
    78;  // configuration, damaged data, or data in use; a restart will not help

// Of a store that cannot be opened, read or written.
[[nodiscard]] inline int exit_code_of(const Error& error) {
  const bool a_person_must_look =
      error.code == Code::kBusy || error.code == Code::kInvalid || error.code == Code::kDenied;
  return a_person_must_look ? kExitConfig : kExitStore;
}

}  // namespace pawl::pawld
