// How pawld ends; pinned, because service managers act on them (sysexits.h).
#pragma once

namespace pawl::pawld {

inline constexpr int kExitOk = 0;      // a clean stop
inline constexpr int kExitUsage = 64;  // the command line
inline constexpr int kExitStore = 74;  // the store failed; a restart may help
inline constexpr int kExitConfig =
    78;  // configuration, damaged data, or data in use; a restart will not help

}  // namespace pawl::pawld
