// What a store really does with conditions, tried out with an object of its own (hard case 58). A
// guard depends on them, and stores that are called compatible ignore or misread them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guard/s3/object_store.h"
#include "pawl/guard.h"

namespace pawl::guard {

struct S3Probe {
  // Why no guard can be installed here, for people; empty: one can.
  std::string fatal = {};
  EtagForm form = EtagForm::kQuoted;
  // Things to know that do not weaken the guard.
  std::vector<std::string> notes = {};
  bool conditional_delete = false;
};

// The error is that of a request that failed: nothing is known then.
[[nodiscard]] Result<S3Probe> probe_s3(ObjectStore& store, const std::string& nonce);

// The bucket policy that keeps others from writing around a guard. As JSON, for the bucket's owner
// to put there.
[[nodiscard]] std::string s3_policy_advice(const std::string& bucket,
                                           const std::vector<std::string>& keys);
// Whether a policy has the statement of the advice for this key.
[[nodiscard]] bool policy_protects(const std::string& policy, const std::string& key);

}  // namespace pawl::guard
