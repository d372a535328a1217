#include "guard/s3/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/limits.h"
#include "guard/s3/names.h"

namespace pawl::guard {
namespace {

// The ETag of a body that is nowhere.
constexpr const char* kNoEtag = "00000000000000000000000000000000";
constexpr const char* kStatement = "PawlGuard";

class Prober {
 public:
  Prober(ObjectStore& store, const std::string& nonce)
      : store_(store), nonce_(nonce), key_(probe_key(nonce)) {}
  ~Prober() { static_cast<void>(store_.remove(key_, {}, EtagForm::kQuoted)); }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  Result<S3Probe> run() {
    S3Probe report;
    for (const auto step : {&Prober::versions, &Prober::create_only, &Prober::right_etag,
                            &Prober::wrong_etag, &Prober::deletion}) {
      if (const auto done = (this->*step)(report); !done) return done.error();
      if (!report.fatal.empty()) return report;
    }
    return report;
  }

 private:
  using Kind = Precondition::Kind;

  struct Tried {
    bool landed = false;     // what was put is there now
    bool refused = false;    // the store said so
    std::string error = {};  // the store's words when it failed otherwise
    std::string etag = {};   // of what is there now
  };

  // Puts a body of its own and looks what is there. The answer alone proves nothing.
  Result<Tried> try_put(Kind kind, const std::string& etag, EtagForm form) {
    const std::string body = fmt::format("probe {} {}", nonce_, ++count_);
    const auto answer = store_.put(key_, body, {kind, etag}, form);
    if (!answer &&
        (answer.error().code == Code::kUnavailable || answer.error().code == Code::kDenied))
      return answer.error();
    const auto found = store_.get(key_, limits::kFencedHeaderMax);
    if (!found) return found.error();
    Tried tried;
    tried.refused = answer && answer->refused;
    if (!answer) tried.error = answer.error().detail;
    tried.landed = *found && (*found)->bytes == body;
    if (*found) tried.etag = (*found)->etag;
    return tried;
  }

  Result<void> versions(S3Probe& report) {
    const auto found = store_.versioning();
    if (!found) return found.error();
    if (*found != Versioning::kOff)
      report.notes.push_back(
          fmt::format("the bucket keeps versions ({}): every guarded write leaves one",
                      *found == Versioning::kOn ? "enabled" : "suspended"));
    return {};
  }

  Result<void> create_only(S3Probe& report) {
    const auto first = try_put(Kind::kAbsent, "", EtagForm::kQuoted);
    if (!first) return first.error();
    if (!first->landed) {
      report.fatal = fmt::format("it does not take PUT with If-None-Match: *{}{}",
                                 first->error.empty() ? "" : ": ", first->error);
      return {};
    }
    const auto second = try_put(Kind::kAbsent, "", EtagForm::kQuoted);
    if (!second) return second.error();
    if (second->landed) {
      report.fatal =
          "it ignores If-None-Match: * and overwrites an object that is there. A stale write could "
          "not be refused";
      if (!report.notes.empty())
        report.fatal += "; it may do better in a bucket without versions: " + report.notes.front();
    }
    before_ = second->etag;
    return {};
  }

  Result<void> right_etag(S3Probe& report) {
    for (const EtagForm form : {EtagForm::kQuoted, EtagForm::kUnquoted}) {
      const auto tried = try_put(Kind::kMatches, before_, form);
      if (!tried) return tried.error();
      if (!tried->landed) continue;
      report.form = form;
      older_ = std::exchange(before_, tried->etag);
      if (older_ == before_) {
        report.fatal = "an object that was replaced keeps its ETag";
      } else if (form == EtagForm::kUnquoted) {
        report.notes.emplace_back(
            "it compares If-Match only without quotes, against RFC 9110; the guard follows it");
      }
      return {};
    }
    report.fatal = "it refuses PUT with If-Match even when the ETag is right";
    return {};
  }

  // One that never was, and that of the body before: that is what a stale writer has.
  Result<void> wrong_etag(S3Probe& report) {
    for (const std::string& etag : {std::string(kNoEtag), older_}) {
      const auto tried = try_put(Kind::kMatches, etag, report.form);
      if (!tried) return tried.error();
      if (!tried->landed) continue;
      report.fatal =
          "it ignores If-Match and overwrites an object that has changed. A stale write could not "
          "be refused";
      return {};
    }
    return {};
  }

  Result<void> deletion(S3Probe& report) {
    const auto removed = store_.remove(key_, {Kind::kMatches, kNoEtag}, report.form);
    if (!removed && removed.error().code == Code::kUnavailable) return removed.error();
    const auto left = store_.get(key_, limits::kFencedHeaderMax);
    if (!left) return left.error();
    report.conditional_delete = left->has_value();
    if (!report.conditional_delete)
      report.notes.emplace_back(
          "it ignores If-Match of DELETE; the guard deletes no fenced object, and a removed "
          "content leaves an object without content");
    if (const auto gone = store_.remove(key_, {}, report.form); !gone) return gone.error();
    const auto tried = try_put(Kind::kMatches, before_, report.form);
    if (!tried) return tried.error();
    if (tried->landed)
      report.fatal = "PUT with If-Match makes an object that was deleted anew, without its fence";
    return {};
  }

  ObjectStore& store_;
  const std::string nonce_;
  const std::string key_;
  int count_ = 0;
  std::string before_;  // the ETag of what is there
  std::string older_;   // the ETag of what was there before that
};

}  // namespace

Result<S3Probe> probe_s3(ObjectStore& store, const std::string& nonce) {
  return Prober(store, nonce).run();
}

std::string s3_policy_advice(const std::string& bucket, const std::vector<std::string>& keys) {
  std::vector<std::string> resources;
  for (const std::string& key : keys)
    resources.push_back(fmt::format("\"arn:aws:s3:::{}/{}\"", bucket, key));
  const std::string list = fmt::format("{}", fmt::join(resources, ", "));
  return fmt::format(
      "{{\"Version\": \"2012-10-17\", \"Statement\": [\n"
      "  {{\"Sid\": \"{0}Delete\", \"Effect\": \"Deny\", \"Principal\": \"*\",\n"
      "   \"Action\": [\"s3:DeleteObject\", \"s3:DeleteObjectVersion\"],\n"
      "   \"Resource\": [{1}]}},\n"
      "  {{\"Sid\": \"{0}Put\", \"Effect\": \"Deny\", \"Principal\": \"*\",\n"
      "   \"Action\": \"s3:PutObject\", \"Resource\": [{1}],\n"
      "   \"Condition\": {{\"Null\": {{\"s3:if-match\": \"true\"}}}}}}]}}\n",
      kStatement, list);
}

bool policy_protects(const std::string& policy, const std::string& key) {
  return policy.find(fmt::format("{}Delete", kStatement)) != policy.npos &&
         policy.find(fmt::format("{}Put", kStatement)) != policy.npos &&
         policy.find("s3:if-match") != policy.npos && policy.find("/" + key + "\"") != policy.npos;
}

}  // namespace pawl::guard
