#include "cli/exit_codes.h"

namespace pawl::cli {

int exit_code(Code code) {
  switch (code) {
    case Code::kBusy:
      return kExitNotAcquired;
    case Code::kLeaseLost:
      return kExitLost;
    case Code::kStaleToken:
      return kExitStale;
    case Code::kUnavailable:
    case Code::kUnknown:
      return kExitUnreachable;
    case Code::kInvalid:
      return kExitUsage;
    case Code::kDenied:
      return kExitDenied;
    case Code::kIssuerBehind:
      return kExitConfiguration;
  }
  return kExitUnreachable;
}

}  // namespace pawl::cli
