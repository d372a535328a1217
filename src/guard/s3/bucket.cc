#include "guard/s3/bucket.h"

#include <fmt/format.h>

#include <utility>

#include "aws/sigv4.h"
#include "base/assert.h"
#include "base/limits.h"
#include "guard/s3/names.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr std::size_t kSeenMax = 1000;
constexpr int kRecordTriesMax = 20;
constexpr std::size_t kRecordMax = 256 * 1024;
// A direct object is as large as the user allows; else it is small.
constexpr std::size_t kFencedMax = limits::kFencedHeaderMax + limits::kFencedContentMax;

std::string value_of_line(std::string_view text, std::string_view name) {
  const std::string wanted = fmt::format("\n{} ", name);
  const std::size_t at = text.find(wanted);
  if (at == text.npos) return "";
  const std::size_t from = at + wanted.size();
  return std::string(text.substr(from, text.find('\n', from) - from));
}

}  // namespace

S3Landing find_landing(const S3Replacement& sent, const std::optional<S3Loaded>& now) {
  if (!now) return S3Landing::kCannotTell;
  const S3Envelope& found = now->envelope;
  const std::uint64_t wanted = sent.next.sequence;
  if (found.sequence + 1 == wanted)
    return now->etag == sent.base_etag ? S3Landing::kUnchanged : S3Landing::kCannotTell;
  if (found.sequence < wanted) return S3Landing::kCannotTell;
  const std::uint64_t back = found.sequence - wanted;
  if (back >= found.nonces.size()) return S3Landing::kCannotTell;
  return found.nonces[back] == sent.next.nonces.front() ? S3Landing::kApplied
                                                        : S3Landing::kSuperseded;
}

S3Envelope next_after(const S3Envelope& now, std::string nonce) {
  S3Envelope next = now;
  ++next.sequence;
  next.nonces.insert(next.nonces.begin(), std::move(nonce));
  if (next.nonces.size() > limits::kFencedNoncesMax) next.nonces.resize(limits::kFencedNoncesMax);
  return next;
}

std::string to_bytes(const S3Installation& installation) {
  return fmt::format("pawl-s3 1\nversion {}\ncontract {}\netag {}\n", installation.version,
                     installation.contract, to_text(installation.form));
}

Result<S3Installation> parse_installation(std::string_view bytes) {
  S3Installation found{value_of_line(bytes, "version"), value_of_line(bytes, "contract")};
  const std::string etag = value_of_line(bytes, "etag");
  found.form = etag == "unquoted" ? EtagForm::kUnquoted : EtagForm::kQuoted;
  if (!bytes.starts_with("pawl-s3 ") || found.contract.empty() || etag.empty())
    return Error{Code::kInvalid, fmt::format("the object {} is damaged: run pawl guard install s3",
                                             kS3Installation)};
  return found;
}

std::string S3Bucket::new_nonce() {
  return fmt::format("{:016x}{:016x}", random_.next(), random_.next());
}

Result<std::optional<S3Installation>> S3Bucket::installed() {
  using Found = std::optional<S3Installation>;
  const auto object = store_->get(kS3Installation, limits::kFencedHeaderMax);
  if (!object) return object.error();
  if (!*object) return Found{};
  const auto parsed = parse_installation((*object)->bytes);
  if (!parsed) return parsed.error();
  return Found{*parsed};
}

Result<void> S3Bucket::verify() {
  if (verified_) return {};
  const auto found = installed();
  if (!found) return found.error();
  if (!*found)
    return Error{Code::kInvalid,
                 fmt::format("no guard is installed in {}: pawl guard install s3", store_->name())};
  if (const auto same = check_contract_version((*found)->contract, (*found)->version); !same)
    return same.error();
  form_ = (*found)->form;
  verified_ = true;
  return {};
}

Result<std::optional<S3Loaded>> S3Bucket::load(const std::string& key) {
  using Found = std::optional<S3Loaded>;
  forget(key);
  auto object = store_->get(key, kFencedMax);
  if (!object) return object.error();
  if (!*object || !(*object)->bytes.starts_with("pawl-fenced-object ")) return Found{};
  auto envelope = parse_envelope((*object)->bytes);
  if (!envelope)
    return Error{envelope.error().code, fmt::format("{}: {}", key, envelope.error().detail)};
  if (envelope->key != key)
    return Error{Code::kInvalid,
                 fmt::format("{} is a copy of the fenced object {}, and guards nothing: delete it, "
                             "and run pawl guard protect s3",
                             key, envelope->key)};
  if ((*object)->etag.empty())
    return Error{Code::kInvalid, store_->name() + " sends no ETag, which a guard needs"};
  S3Loaded loaded{(*object)->etag, *std::move(envelope)};
  if (seen_.size() >= kSeenMax) seen_.clear();
  seen_.insert_or_assign(key, loaded);
  return Found{std::move(loaded)};
}

std::optional<S3Loaded> S3Bucket::remembered(const std::string& key) const {
  const auto found = seen_.find(key);
  if (found == seen_.end()) return std::nullopt;
  return found->second;
}

Result<std::optional<std::string>> S3Bucket::content(const S3Envelope& envelope) {
  using Found = std::optional<std::string>;
  const S3Content& content = envelope.content;
  if (content.place == S3Content::Place::kNone) return Found{};
  if (content.place == S3Content::Place::kInline) return Found{content.bytes};
  auto object = store_->get(content.object, limits::kFencedContentMax);
  if (!object) return object.error();
  if (!*object)
    return Error{Code::kUnavailable,
                 fmt::format("the content of {} was replaced while it was read", envelope.key)};
  std::string& bytes = (*object)->bytes;
  if (bytes.size() != content.size || aws::sha256_hex(bytes) != content.sha256)
    return Error{Code::kInvalid, fmt::format("{} was changed, and is not the content of {} any "
                                             "more: write that again",
                                             content.object, envelope.key)};
  return Found{std::move(bytes)};
}

Result<S3Content> S3Bucket::place(const S3Envelope& next, const std::string& bytes,
                                  std::size_t inline_max) {
  if (bytes.size() > limits::kFencedContentMax)
    return Error{Code::kInvalid, fmt::format("the content of a guarded object has at most {} bytes",
                                             limits::kFencedContentMax)};
  S3Content content{.size = bytes.size(), .sha256 = aws::sha256_hex(bytes)};
  if (bytes.size() <= inline_max) {
    content.place = S3Content::Place::kInline;
    content.bytes = bytes;
    return content;
  }
  content.place = S3Content::Place::kObject;
  content.object = data_key(next.key, next.sequence, next.nonces.front());
  const auto done = store_->put(content.object, bytes, {}, form_);
  if (done) return content;
  // Whether it is there or not: nothing refers to it.
  const Code code = done.error().code == Code::kUnknown ? Code::kUnavailable : done.error().code;
  return Error{code, done.error().detail};
}

Result<PutAnswer> S3Bucket::replace(const S3Replacement& replacement) {
  PAWL_ASSERT(!replacement.base_etag.empty());
  auto answer = store_->put(replacement.key, to_bytes(replacement.next),
                            {Precondition::Kind::kMatches, replacement.base_etag}, form_);
  forget(replacement.key);
  if (answer && !answer->refused && !answer->etag.empty())
    seen_.insert_or_assign(replacement.key, S3Loaded{answer->etag, replacement.next});
  return answer;
}

Result<S3Record> S3Bucket::record(const std::string& key) {
  const auto object = store_->get(record_key(key), kRecordMax);
  if (!object) return object.error();
  return *object ? parse_record((*object)->bytes) : S3Record{};
}

Result<void> S3Bucket::change_record(const std::string& key,
                                     const std::function<void(S3Record&)>& change) {
  for (int tries = 0; tries < kRecordTriesMax; ++tries) {
    const auto object = store_->get(record_key(key), kRecordMax);
    if (!object) return object.error();
    S3Record record = *object ? parse_record((*object)->bytes) : S3Record{};
    change(record);
    const Precondition condition = *object
                                       ? Precondition{Precondition::Kind::kMatches, (*object)->etag}
                                       : Precondition{Precondition::Kind::kAbsent};
    const auto done = store_->put(record_key(key), to_bytes(record), condition, form_);
    if (done && !done->refused) return {};
    if (!done && done.error().code != Code::kUnknown) return done.error();
  }
  return Error{Code::kUnavailable, fmt::format("too many others change {}", record_key(key))};
}

}  // namespace pawl::guard
