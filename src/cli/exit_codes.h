// The exit codes of pawl. Scripts rely on them; they are part of the compatibility promise.
#pragma once

#include "pawl/result.h"

namespace pawl::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitNothingDone = 1;  // break: that token does not hold that lock
inline constexpr int kExitUsage = 64;       // the command line, or what pawld says is wrong with it
inline constexpr int kExitUnreachable = 69;  // no pawld, or none that could answer
inline constexpr int kExitOutput = 74;       // stdout could not be written
inline constexpr int kExitNotAcquired = 75;  // someone else holds it; -E chooses another number
inline constexpr int kExitDenied = 77;       // not permitted
// PAWL_ADDR, PAWL_AUTH, certificates or a file of users is wrong.
inline constexpr int kExitConfiguration = 78;
// run: a process of CMD could not be stopped, and may still run.
inline constexpr int kExitNotStopped = 120;
inline constexpr int kExitStale = 121;  // refused by a guard
inline constexpr int kExitLost = 122;   // the lease is over
// run: a guard could not be advanced in time; never mapped by -E.
inline constexpr int kExitGuardBusy = 123;
inline constexpr int kExitMaxHold = 124;    // run: --max-hold or --max-stopped was reached
inline constexpr int kExitFailed = 125;     // run: pawl itself failed before CMD started
inline constexpr int kExitNoExecute = 126;  // run: CMD cannot be executed
inline constexpr int kExitNotFound = 127;   // run: CMD was not found
// run: plus the number of the signal that ended CMD, or the wait.
inline constexpr int kExitSignalled = 128;

// The exit code for an error.
[[nodiscard]] int exit_code(Code code);

}  // namespace pawl::cli
