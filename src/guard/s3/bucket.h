// A bucket with guarded objects: reads and replaces fenced objects, remembers the last one it saw of
// each, and keeps their counters. Used by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "guard/s3/envelope.h"
#include "guard/s3/object_store.h"
#include "guard/s3/record.h"

namespace pawl::guard {

// A fenced object as it was read.
struct S3Loaded {
  std::string etag;
  S3Envelope envelope;
};

// One conditional replacement of a fenced object.
struct S3Replacement {
  std::string key;
  std::string base_etag;  // of what it replaces
  S3Envelope next;        // sequence and nonces as next_after() made them
};
// What has become of a replacement whose answer was lost, or that was refused.
enum class S3Landing : std::uint8_t {
  kApplied,     // It is in effect, or was until another replaced it.
  kSuperseded,  // It is not, and cannot take effect any more.
  kUnchanged,   // The object is still what it would replace.
  kCannotTell,  // More replacements have followed than the object remembers, or it was made anew.
};
[[nodiscard]] S3Landing find_landing(const S3Replacement& sent, const std::optional<S3Loaded>& now);

// The sequence number and nonces of a replacement of `now`.
[[nodiscard]] S3Envelope next_after(const S3Envelope& now, std::string nonce);

// What `pawl guard install s3` leaves in the bucket.
struct S3Installation {
  std::string version;
  std::string contract;
  EtagForm form = EtagForm::kQuoted;

  bool operator==(const S3Installation&) const = default;
};
[[nodiscard]] std::string to_bytes(const S3Installation& installation);
[[nodiscard]] Result<S3Installation> parse_installation(std::string_view bytes);

class S3Bucket {
 public:
  explicit S3Bucket(std::unique_ptr<ObjectStore> store) : store_(std::move(store)) {}

  [[nodiscard]] ObjectStore& store() { return *store_; }
  [[nodiscard]] EtagForm form() const { return form_; }
  void use_form(EtagForm form) { form_ = form; }
  [[nodiscard]] std::string new_nonce();

  // Nothing: the bucket was not prepared.
  Result<std::optional<S3Installation>> installed();
  // Asked once: that the bucket was prepared for the contract of this libpawl. Uses its form of
  // ETags from then on.
  Result<void> verify();

  // Nothing: the object is not there, or is not a fenced one. kInvalid: it is damaged, or a copy.
  Result<std::optional<S3Loaded>> load(const std::string& key);
  // As it was last seen; nothing: never, or forgotten.
  [[nodiscard]] std::optional<S3Loaded> remembered(const std::string& key) const;
  void forget(const std::string& key) { seen_.erase(key); }

  // The content. Nothing: there is none. kUnavailable: the object with it is gone, because the
  // fenced object was replaced since; load that again.
  Result<std::optional<std::string>> content(const S3Envelope& envelope);
  // Puts content where it belongs, which may be an object of its own.
  Result<S3Content> place(const S3Envelope& next, const std::string& bytes, std::size_t inline_max);
  Result<PutAnswer> replace(const S3Replacement& replacement);

  // Changes the counters of a guard; not at all where too many others do, or the store fails.
  Result<void> change_record(const std::string& key, const std::function<void(S3Record&)>& change);
  Result<S3Record> record(const std::string& key);

 private:
  const std::unique_ptr<ObjectStore> store_;
  EtagForm form_ = EtagForm::kQuoted;
  bool verified_ = false;
  SystemRandom random_;
  std::map<std::string, S3Loaded, std::less<>> seen_;
};

}  // namespace pawl::guard
