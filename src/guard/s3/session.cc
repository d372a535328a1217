// A client of a bucket as a Session.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "guard/s3/dsn.h"
#include "guard/s3/front.h"
#include "guard/s3/kind.h"
#include "guard/s3/s3_store.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

std::optional<std::uint64_t> none_for_zero(std::uint64_t fence) {
  return fence == 0 ? std::optional<std::uint64_t>{} : fence;
}

class S3Session final : public Session {
 public:
  explicit S3Session(const S3Options& options)
      : front_(open_s3_store(options), options), guard_(options) {}

  Result<void> verify() { return front_.verify(); }

  // Appends a line to the content: read, changed and replaced on the condition that nobody else
  // has.
  Outcome write(const Admission& admission, const std::string& value) override {
    const std::string& key = admission.resources.front();
    std::uint64_t token = 0;
    if (admission.token) {
      const auto parsed = parse_token(*admission.token);
      if (!parsed) return malformed(key, *admission.token);
      token = *parsed;
    }
    const std::uint64_t operation = admission.operation.value_or(0);
    if (admission.operation && (operation == 0 || operation > limits::kTokenMax))
      return malformed(key, std::to_string(operation));
    const std::string line = fmt::format("{} {}\n", token, value);
    if (key.find(kS3Bare) != key.npos) return write_bare(key, line);
    S3Write order{.held = {.token = token}, .key = key, .operation = operation};
    order.content = [&](const std::optional<std::string>& before) {
      return before.value_or("") + line;
    };
    return to_answer(front_.write(order));
  }

  Outcome remove(const std::string& resource, std::uint64_t token) override {
    return to_answer(front_.write({.held = {.token = token}, .key = resource}));
  }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds) override {
    const auto before = front_.advance(resource, token);
    if (!before) return {failure(before.error()), {}};
    return {{Answer::kDone}, none_for_zero(*before)};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const auto decision = front_.check(resource, token);
    if (!decision) return {failure(decision.error()), {}};
    return {to_outcome(decision), none_for_zero(decision->max)};
  }

  [[nodiscard]] Guard* front() override { return &guard_; }
  // The statement is the new content.
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    return guard_.update(lease, write.resource, [&](const auto&) { return write.statement(); },
                         {.operation = write.operation});
  }

 private:
  Outcome failure(const Error& error) {
    if (front_.unguarded()) return {Answer::kUnguarded, false, error.detail};
    if (const auto verdict = front_.refusal())
      return {*parse_answer(to_text(*verdict)), false, error.detail};
    if (error.code == Code::kUnavailable) return {Answer::kAgain, false, error.detail};
    return to_outcome(error);
  }
  Outcome to_answer(const Result<Decision>& decision) {
    return decision ? to_outcome(decision) : failure(decision.error());
  }

  Outcome malformed(const std::string& key, std::string_view text) {
    static_cast<void>(
        front_.bucket().change_record(key, [](S3Record& record) { ++record.malformed; }));
    return {Answer::kMalformed, false,
            fmt::format("malformed number '{}': it is a whole number from 1 to {}, as text without "
                        "sign, space or leading zero",
                        text.substr(0, 40), limits::kTokenMax)};
  }

  // As programs do that know no tokens.
  Outcome write_bare(const std::string& key, const std::string& line) {
    ObjectStore& store = front_.bucket().store();
    const auto before = store.get(key, limits::kFencedContentMax);
    if (!before) return to_outcome(before.error());
    const std::string bytes = (*before ? (*before)->bytes : "") + line;
    const auto done = store.put(key, bytes, {}, front_.bucket().form());
    return done ? Outcome{Answer::kDone} : to_outcome(done.error());
  }

  S3Front front_;
  S3Guard guard_;
};

}  // namespace

Result<std::unique_ptr<Session>> open_s3_session(const std::string& dsn,
                                                 const SessionRequest& request) {
  auto options = parse_s3_dsn(dsn);
  if (!options) return options.error();
  if (request.form == "direct") options->inline_max = limits::kFencedContentMax;
  if (request.form == "pointer") options->inline_max = 0;
  auto session = std::make_unique<S3Session>(*options);
  if (const auto ready = session->verify(); !ready) return ready.error();
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace pawl::guard
