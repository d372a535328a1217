// What a guard needs of a bucket. s3_store.h is the real one; tests have one in memory.
//
// Errors: kUnavailable nothing happened, kUnknown it may have happened, kDenied a right is missing,
// kInvalid anything else that a repetition does not mend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::guard {

// How an ETag is written in If-Match: as RFC 9110 and all of Amazon's libraries do, or bare, as
// older versions of Ceph want it.
enum class EtagForm : std::uint8_t { kQuoted, kUnquoted };
[[nodiscard]] std::string_view to_text(EtagForm form);

struct StoredObject {
  std::string etag;  // without quotes
  std::string bytes;
};

struct Precondition {
  enum class Kind : std::uint8_t {
    kNone,
    kAbsent,   // If-None-Match: *
    kMatches,  // If-Match
  };
  Kind kind = Kind::kNone;
  std::string etag = {};
};

struct PutAnswer {
  // 409 or 412: the store says that the condition does not hold. What that means for this very
  // request must be read back: a store may answer so although an earlier copy of it has landed.
  bool refused = false;
  // This client may have sent it twice. (Proxies may, too, and nobody knows.)
  bool perhaps_repeated = false;
  std::string etag = {};  // of the new object; empty: the store did not tell
};

enum class Versioning : std::uint8_t { kOff, kOn, kSuspended };

// Used by one thread at a time.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // For messages: where it is, without secrets.
  [[nodiscard]] virtual std::string name() const = 0;
  // Nothing: there is no such object.
  virtual Result<std::optional<StoredObject>> get(const std::string& key, std::size_t max) = 0;
  virtual Result<PutAnswer> put(const std::string& key, const std::string& bytes,
                                const Precondition& condition, EtagForm form) = 0;
  // False: refused by the condition. An object that is not there is removed.
  virtual Result<bool> remove(const std::string& key, const Precondition& condition,
                              EtagForm form) = 0;
  // The keys that begin with `prefix`, in order.
  virtual Result<std::vector<std::string>> list(const std::string& prefix) = 0;
  virtual Result<Versioning> versioning() = 0;
  // The bucket's policy as JSON; nothing: it has none, or the store knows no policies.
  virtual Result<std::optional<std::string>> policy() = 0;
};

}  // namespace pawl::guard
