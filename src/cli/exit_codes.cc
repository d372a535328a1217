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

const char* code_word(Code code) {
  switch (code) {
    case Code::kBusy:
      return "busy";
    case Code::kLeaseLost:
      return "lost";
    case Code::kStaleToken:
      return "stale";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnknown:
      return "unknown";
    case Code::kInvalid:
      return "invalid";
    case Code::kDenied:
      return "denied";
    case Code::kIssuerBehind:
      return "issuer_behind";
  }
  return "unknown";
}

}  // namespace pawl::cli
