#include "guard/s3/s3_store.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "guard/s3/replies.h"

namespace pawl::guard {
namespace {

// Where requests go: the bucket is a part of the host, or of the path.
struct S3Place {
  std::string origin;  // https://host:port
  std::string host;
  std::string path;  // "/" or "/BUCKET/"
};

Error bad_option(std::string detail) {
  return {Code::kInvalid, "S3: " + std::move(detail)};
}

Result<S3Place> find_place(const S3Options& options) {
  if (options.bucket.empty()) return bad_option("no bucket is named: bucket=NAME");
  if (options.bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") !=
      options.bucket.npos)
    return bad_option("a bucket's name has lower-case letters, digits, '.', '-' and '_'");
  std::string endpoint = options.endpoint;
  if (endpoint.empty()) endpoint = fmt::format("https://s3.{}.amazonaws.com", options.region);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t scheme = endpoint.find("://");
  const std::string_view kind = std::string_view(endpoint).substr(0, scheme);
  if (scheme == endpoint.npos || (kind != "http" && kind != "https") ||
      endpoint.find('/', scheme + 3) != endpoint.npos || endpoint.find('@') != endpoint.npos)
    return bad_option("endpoint is http://HOST[:PORT] or https://HOST[:PORT]");
  std::string host = endpoint.substr(scheme + 3);
  const bool in_path = options.style == S3Style::kPath ||
                       (options.style == S3Style::kAuto && !options.endpoint.empty());
  if (!in_path) host = options.bucket + "." + host;
  S3Place place{fmt::format("{}://{}", kind, host), host,
                in_path ? "/" + options.bucket + "/" : "/"};
  // The usual port is not part of the Host header.
  const std::string usual = kind == "http" ? ":80" : ":443";
  if (place.host.ends_with(usual)) place.host.resize(place.host.size() - usual.size());
  return place;
}

std::string without_quotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

class S3Store final : public ObjectStore {
 public:
  S3Store(S3Options options, S3Place place, std::unique_ptr<aws::Http> http)
      : options_(std::move(options)), place_(std::move(place)), http_(std::move(http)) {}

  [[nodiscard]] std::string name() const override {
    return fmt::format("s3 bucket {} at {}", options_.bucket, place_.origin);
  }

  Result<std::optional<StoredObject>> get(const std::string& key, std::size_t max) override {
    using Found = std::optional<StoredObject>;
    auto answer = send({.method = "GET", .path = path_of(key)}, max);
    if (!answer) return answer.error();
    if (answer->status == 404 && xml_text(answer->body, "Code") != "NoSuchBucket") return Found{};
    if (answer->status != 200) return explain(*answer);
    return Found{{without_quotes(answer->header("etag")), std::move(answer->body)}};
  }

  Result<PutAnswer> put(const std::string& key, const std::string& bytes,
                        const Precondition& condition, EtagForm form) override {
    aws::Request request{.method = "PUT", .path = path_of(key)};
    request.headers.push_back({"content-type", "application/octet-stream"});
    add_condition(request, condition, form);
    request.body = bytes;
    const auto answer = send(std::move(request), limits::kStoreAnswerMax);
    if (!answer) return answer.error();
    if (answer->status == 200) return PutAnswer{.etag = without_quotes(answer->header("etag"))};
    if (refused(*answer, condition))
      return PutAnswer{.refused = true, .perhaps_repeated = answer->perhaps_repeated};
    return explain(*answer);
  }

  Result<bool> remove(const std::string& key, const Precondition& condition,
                      EtagForm form) override {
    aws::Request request{.method = "DELETE", .path = path_of(key)};
    add_condition(request, condition, form);
    const auto answer = send(std::move(request), limits::kStoreAnswerMax);
    if (!answer) return answer.error();
    if (answer->status == 204 || answer->status == 200) return true;
    if (refused(*answer, condition)) return false;
    if (answer->status == 404 && xml_text(answer->body, "Code") != "NoSuchBucket") return true;
    return explain(*answer);
  }

  Result<std::vector<std::string>> list(const std::string& prefix) override {
    std::vector<std::string> keys;
    std::string next;
    do {
      aws::Request request{.method = "GET", .path = place_.path};
      request.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix}};
      if (!next.empty()) request.query.emplace_back("continuation-token", next);
      const auto answer = send(std::move(request), limits::kStoreAnswerMax);
      if (!answer) return answer.error();
      if (answer->status != 200) return explain(*answer);
      auto page = parse_list_page(answer->body);
      if (!page) return page.error();
      if (keys.size() + page->keys.size() > limits::kFencedListMax)
        return Error{Code::kInvalid, fmt::format("more than {} objects begin with {}",
                                                 limits::kFencedListMax, prefix)};
      keys.insert(keys.end(), page->keys.begin(), page->keys.end());
      next = page->next;
    } while (!next.empty());
    return keys;
  }

  Result<Versioning> versioning() override {
    const auto answer = send({.method = "GET", .path = place_.path, .query = {{"versioning", ""}}},
                             limits::kStoreAnswerMax);
    if (!answer) return answer.error();
    // A store that does not know the question has no versions.
    if (answer->status == 501 || answer->status == 405) return Versioning::kOff;
    if (answer->status != 200) return explain(*answer);
    const std::string status = xml_text(answer->body, "Status").value_or("");
    if (status == "Enabled") return Versioning::kOn;
    return status == "Suspended" ? Versioning::kSuspended : Versioning::kOff;
  }

  Result<std::optional<std::string>> policy() override {
    using Found = std::optional<std::string>;
    const auto answer = send({.method = "GET", .path = place_.path, .query = {{"policy", ""}}},
                             limits::kStoreAnswerMax);
    if (!answer) return answer.error();
    if (answer->status == 200) return Found{answer->body};
    if (answer->status == 404 || answer->status == 405 || answer->status == 501) return Found{};
    return explain(*answer);
  }

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const {
    return place_.path + aws::encode_path(key);
  }

  static void add_condition(aws::Request& request, const Precondition& condition, EtagForm form) {
    if (condition.kind == Precondition::Kind::kAbsent)
      request.headers.push_back({"if-none-match", "*"});
    if (condition.kind == Precondition::Kind::kMatches)
      request.headers.push_back(
          {"if-match", form == EtagForm::kQuoted ? "\"" + condition.etag + "\"" : condition.etag});
  }

  // A PUT with If-Match on an object that is not there is answered with 404 or 412.
  static bool refused(const aws::Response& answer, const Precondition& condition) {
    if (condition.kind == Precondition::Kind::kNone) return false;
    return answer.status == 412 || answer.status == 409 ||
           (answer.status == 404 && xml_text(answer.body, "Code") != "NoSuchBucket");
  }

  Result<aws::Response> send(aws::Request request, std::size_t max) {
    aws::sign(request, {place_.host, options_.region, "s3"},
              {options_.access_key, options_.secret_key, options_.session_token},
              aws::to_time_text(std::time(nullptr)));
    return http_->send(place_.origin, request, max);
  }

  [[nodiscard]] Error explain(const aws::Response& answer) const {
    const std::string code = xml_text(answer.body, "Code").value_or("");
    const std::string text =
        fmt::format("{} answered {} {}: {}", name(), answer.status, printable(code),
                    printable(xml_text(answer.body, "Message").value_or("no message")));
    // Nothing says whether what was asked for has happened all the same.
    if (answer.status >= 500 && answer.status != 501) return {Code::kUnknown, text};
    if (code == "RequestTimeTooSkewed")
      return {Code::kDenied, text + ". Set the clock of this machine"};
    if (answer.status == 401 || answer.status == 403) return {Code::kDenied, text};
    return {Code::kInvalid, text};
  }

  const S3Options options_;
  const S3Place place_;
  const std::unique_ptr<aws::Http> http_;
};

}  // namespace

std::string_view to_text(EtagForm form) {
  return form == EtagForm::kQuoted ? "quoted" : "unquoted";
}

Result<std::unique_ptr<ObjectStore>> open_s3_store(const S3Options& options,
                                                   std::unique_ptr<aws::Http> http) {
  auto place = find_place(options);
  if (!place) return place.error();
  if (options.access_key.empty() || options.secret_key.empty())
    return bad_option(
        "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
        "credentials_file");
  return std::unique_ptr<ObjectStore>(
      std::make_unique<S3Store>(options, *std::move(place), std::move(http)));
}

Result<std::unique_ptr<ObjectStore>> open_s3_store(const S3Options& options) {
  return open_s3_store(options, aws::make_http({.ca_file = options.ca_file,
                                                .connect_timeout = options.connect_timeout,
                                                .timeout = options.timeout}));
}

}  // namespace pawl::guard
