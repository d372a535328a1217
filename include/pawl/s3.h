// Writes to objects in S3, and in stores that are compatible with it, that a newer holder's token
// fences out. Prepare the bucket first: `pawl guard install s3`, `pawl guard protect s3 KEY`.
//
//   pawl::S3Guard guard({.bucket = "shop", .region = "eu-central-1", .access_key = …});
//   auto done = guard.write(lease, "reports/nightly.csv", bytes);
//   if (!done) return report(done.error());                  // kStaleToken is final
//
// The object `reports/nightly.csv` is then a fenced object: a small object that holds the fence and
// small content, or names the object that holds larger content. Check and write are one conditional
// PUT of it. Its format is documented (docs/reference/s3-format.md), and read() reads it. A PUT or
// DELETE of that object around the guard is not checked: `pawl guard protect s3` prints the bucket
// policy that refuses them.
//
// Link Pawl::s3.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

namespace pawl {

namespace guard {  // Pawl's own
class S3Front;
}  // namespace guard

// How the bucket is named in requests.
enum class S3Style : std::uint8_t {
  kAuto,     // kVirtual for Amazon's own S3, kPath where an endpoint is given
  kPath,     // https://HOST/BUCKET/KEY
  kVirtual,  // https://BUCKET.HOST/KEY
};

struct S3Options {
  std::string bucket;
  std::string region = "us-east-1";
  std::string endpoint = {};  // http(s)://HOST[:PORT]; empty: Amazon's S3 in that region
  S3Style style = S3Style::kAuto;
  std::string access_key = {};
  std::string secret_key = {};
  std::string session_token = {};  // of temporary credentials
  std::string ca_file = {};        // certificates to trust instead of the system's
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds timeout{30'000};  // of one request
  // Content up to this size is written into the fenced object itself: one PUT for each write.
  // Larger content costs one more.
  std::size_t inline_max = 8 * 1024;
};

struct S3WriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it. Numbers grow: a smaller one than the last is stale. 0: none.
  std::uint64_t operation = 0;
};

// Used by one thread at a time. Keeps a connection, and what it has last read of each object.
class PAWL_PUBLIC S3Guard final : public Guard {
 public:
  // Connects to nothing yet.
  explicit S3Guard(const S3Options& options);
  ~S3Guard() override;
  S3Guard(const S3Guard&) = delete;
  S3Guard& operator=(const S3Guard&) = delete;

  [[nodiscard]] std::string name() const override;
  // Tries with an object of its own what the store does with conditions, and reads the policy of
  // the bucket.
  [[nodiscard]] GuardStrength strength() override;
  // Never waits for a write: one that has not landed cannot land any more.
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Checks the lease's token and replaces the content, in one atomic step. The value says that the
  // content is in effect: admitted now, replayed (done before), or let through by a mode that does
  // not refuse. An answer that is lost is settled by reading back.
  //   kStaleToken    a newer holder has been here. Stop; never retried.
  //   kIssuerBehind  stale, and yet the lease is alive: pawld's counter is behind the guard. An
  //                  operator must raise it.
  //   kLeaseLost     the lease is over, noticed before the write. Nothing happened.
  //   kUnknown       the store did not answer until the lease was over: it may have happened.
  //   kUnavailable   nothing happened.
  //   kDenied        the credentials lack a right. Nothing happened.
  //   kInvalid       the object is not under guard, or the store's own words.
  [[nodiscard]] Result<Decision> write(const Lease& lease, std::string_view resource,
                                       std::string_view content,
                                       const S3WriteOptions& options = {});
  // The same for a program that has only a token, such as a command under `pawl run`: no lease is
  // checked then.
  [[nodiscard]] Result<Decision> write(std::uint64_t token, std::string_view resource,
                                       std::string_view content,
                                       const S3WriteOptions& options = {});
  // Makes the new content of the old (nothing: there was none), and replaces exactly that. `change`
  // is called again when another write came in between; what it throws comes out.
  using Change = std::function<std::string(const std::optional<std::string>& before)>;
  [[nodiscard]] Result<Decision> update(const Lease& lease, std::string_view resource,
                                        const Change& change, const S3WriteOptions& options = {});
  [[nodiscard]] Result<Decision> update(std::uint64_t token, std::string_view resource,
                                        const Change& change, const S3WriteOptions& options = {});
  // Deletes the content. The fence stays, in an object without content.
  [[nodiscard]] Result<Decision> remove(const Lease& lease, std::string_view resource);

  // The content as of the last write. Nothing: none was written, or it was removed. A reader that
  // builds on it checks its token afterwards.
  [[nodiscard]] Result<std::optional<std::string>> read(std::string_view resource);

 private:
  std::unique_ptr<guard::S3Front> front_;
};

}  // namespace pawl
