#include "etcd/verdict.h"

namespace pawl::etcd {

Verdict judge(const GrpcStatus& status) {
  if (status.is(GrpcCode::kOk)) return Verdict::kAnswered;
  if (status.is(GrpcCode::kUnauthenticated)) return Verdict::kNeedsToken;
  if (status.is(GrpcCode::kInvalidArgument)) {
    // Both have the code of a request that is wrong. The second: the users of etcd were changed
    // after the token was issued.
    const bool needs_token = status.text == "etcdserver: user name is empty" ||
                             status.text == "etcdserver: revision of auth store is old";
    return needs_token ? Verdict::kNeedsToken : Verdict::kRefused;
  }
  if (status.is(GrpcCode::kPermissionDenied)) return Verdict::kRefused;
  return Verdict::kUnknown;
}

bool says_compacted(const GrpcStatus& status) {
  return status.is(GrpcCode::kOutOfRange) &&
         status.text == "etcdserver: mvcc: required revision has been compacted";
}

bool says_authentication_is_off(const GrpcStatus& status) {
  return status.is(GrpcCode::kFailedPrecondition) &&
         status.text == "etcdserver: authentication is not enabled";
}

}  // namespace pawl::etcd
