// What the end of a call to etcd lets its caller conclude.
//
// etcd answers "no" to transactions that it then applies all the same (time-outs, lost leaders,
// even "database space exceeded"), so only few answers decide anything (hard case 48).
#pragma once

#include <cstdint>

#include "etcd/grpc.h"

namespace pawl::etcd {

enum class Verdict : std::uint8_t {
  kAnswered,    // The answer counts.
  kRefused,     // The request is wrong or not allowed: stop, and show the text.
  kNeedsToken,  // Nothing was done, because the caller is not known: authenticate, send again.
  kUnknown,     // It may have been done, now or later: only the same bytes, sent again, decide.
};

[[nodiscard]] Verdict judge(const GrpcStatus& status);
// The revision that was asked for is forgotten. No verdict on a transaction: those name none.
[[nodiscard]] bool says_compacted(const GrpcStatus& status);
// The server has no users at all, so that there is nothing to authenticate for.
[[nodiscard]] bool says_authentication_is_off(const GrpcStatus& status);

}  // namespace pawl::etcd
