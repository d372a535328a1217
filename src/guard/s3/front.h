// What S3Guard, sessions and the administration do with one bucket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guard/retry_and_settle.h"
#include "guard/s3/bucket.h"
#include "guard/s3/change.h"
#include "guard/s3/rules.h"
#include "pawl/s3.h"

namespace pawl::guard {

struct S3Write {
  HeldToken held = {};  // token 0: a write without one
  std::string key;
  std::uint64_t operation = 0;   // 0: none
  S3Guard::Change content = {};  // empty: the content is removed
};

class S3Front {
 public:
  // The store may be an error, which every call then returns: constructors do not fail.
  S3Front(Result<std::unique_ptr<ObjectStore>> store, S3Options options);

  [[nodiscard]] std::string name() const;
  [[nodiscard]] const S3Options& options() const { return options_; }
  // Only where the store could be opened.
  [[nodiscard]] S3Bucket& bucket() { return *bucket_; }
  // The error of opening, or of the installation.
  [[nodiscard]] Result<void> verify();

  [[nodiscard]] GuardStrength strength();
  [[nodiscard]] Result<std::uint64_t> advance(const std::string& key, std::uint64_t token);
  [[nodiscard]] Result<Decision> check(const std::string& key, std::uint64_t token);
  [[nodiscard]] Result<Decision> write(const S3Write& write);
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& key);
  // Nothing: it is not under guard.
  [[nodiscard]] Result<std::optional<S3Loaded>> load(const std::string& key);

  // Of the last call that failed: the verdict of a refusal; nothing when it failed otherwise.
  [[nodiscard]] std::optional<Verdict> refusal() const { return refusal_; }
  [[nodiscard]] bool unguarded() const { return unguarded_; }

 private:
  void count(const std::string& key, const S3Verdict& verdict);

  const S3Options options_;
  std::optional<Error> error_;
  std::unique_ptr<S3Bucket> bucket_;
  std::optional<Verdict> refusal_;
  bool unguarded_ = false;
};

}  // namespace pawl::guard
