// The exit codes of pawld. They do not change, because service managers act on them (sysexits.h).
#pragma once

#include "pawl/result.h"

namespace pawl::pawld {

inline constexpr int kExitOk = 0;      // A clean stop.
inline constexpr int kExitUsage = 64;  // The command line is wrong.
inline constexpr int kExitStore = 74;  // The store failed; a restart may help.
// Configuration, damaged data, or data in use; a restart does not help.
inline constexpr int kExitConfig = 78;

// The exit code for a store that cannot be opened, read or written.
[[nodiscard]] inline int exit_code_of(const Error& error) {
  const bool needs_a_person =
      error.code == Code::kBusy || error.code == Code::kInvalid || error.code == Code::kDenied;
  return needs_a_person ? kExitConfig : kExitStore;
}

}  // namespace pawl::pawld
