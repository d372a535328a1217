// One change of a fenced object, tried until its outcome is known: read (or remembered), judged,
// replaced on the condition that it is still what was judged.
//
// Whatever the store answers but success is read back, never sent again blindly: 409 and 412 may be
// the answer to a copy of a request that landed, 500 and a lost answer may be anything. A
// replacement is sent again only while the object is still what it replaces, and then with the same
// bytes: the condition lets one of the two land at most.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "guard/retry_and_settle.h"
#include "guard/s3/bucket.h"
#include "pawl/s3.h"

namespace pawl::guard {

// What a fenced object is to become.
struct S3Plan {
  S3Envelope next;  // fence and policy; sequence, nonces and content are set when it is sent
  Decision decision = {};
  enum class Content : std::uint8_t { kKeep, kReplace, kRemove };
  Content content = Content::kKeep;
};

struct S3ChangeOrder {
  std::string key;
  HeldToken held = {};
  std::uint64_t operation = 0;  // 0: none
  // What to do with the object as it is now: a plan, or the end of it. Pure; called again when
  // another change came in between.
  std::function<std::variant<S3Plan, Decision, Error>(const S3Envelope& now)> plan = {};
  // For Content::kReplace.
  S3Guard::Change content = {};
  std::size_t inline_max = 0;
};

class S3Change final : public RetryAndSettle {
 public:
  S3Change(S3Bucket& bucket, S3ChangeOrder order);

  Result<Decision> execute();
  // After execute() failed: the object is not there, or not a fenced one.
  [[nodiscard]] bool unguarded() const { return unguarded_; }

 private:
  Attempt attempt() override;
  Settled settle() override;
  [[nodiscard]] std::string_view cannot_tell() const override;

  Attempt try_once();
  Attempt replace(const S3Loaded& now, S3Plan plan);
  Attempt send();
  Result<S3Landing> read_back();
  Attempt failed(const Error& error);

  S3Bucket& bucket_;
  const S3ChangeOrder order_;
  S3Replacement sent_ = {};
  Decision planned_ = {};
  bool landed_ = false;
  bool overtaken_ = false;  // by another writer, in the last try
  bool unguarded_ = false;
};

[[nodiscard]] Error not_under_s3_guard(std::string_view key);

}  // namespace pawl::guard
