#include "guard/dynamodb/store.h"

#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "guard/dynamodb/limits.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr std::string_view kTarget = "DynamoDB_20120810.";

struct Place {
  std::string origin;
  std::string host;  // as the Host header has it
};

Error bad_option(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

Result<Place> find_place(const DynamoOptions& options) {
  if (options.region.empty()) return bad_option("region is empty");
  std::string endpoint = options.endpoint;
  if (endpoint.empty()) endpoint = fmt::format("https://dynamodb.{}.amazonaws.com", options.region);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t scheme = endpoint.find("://");
  const std::string_view kind = std::string_view(endpoint).substr(0, scheme);
  if (scheme == endpoint.npos || (kind != "http" && kind != "https") ||
      endpoint.find('/', scheme + 3) != endpoint.npos || endpoint.find('@') != endpoint.npos)
    return bad_option("endpoint is http://HOST[:PORT] or https://HOST[:PORT]");
  Place place{endpoint, endpoint.substr(scheme + 3)};
  // The usual port is not part of the Host header.
  const std::string usual = kind == "http" ? ":80" : ":443";
  if (place.host.ends_with(usual)) place.host.resize(place.host.size() - usual.size());
  return place;
}

class HttpStore final : public DynamoStore {
 public:
  HttpStore(DynamoOptions options, Place place, std::unique_ptr<aws::Http> http)
      : options_(std::move(options)), place_(std::move(place)), http_(std::move(http)) {}

  [[nodiscard]] std::string name() const override { return "dynamodb at " + place_.origin; }

  Result<DynamoAnswer> call(std::string_view operation, const json::object& body) override {
    aws::Request request{.method = "POST", .path = "/"};
    request.headers.push_back({"content-type", "application/x-amz-json-1.0"});
    request.headers.push_back({"x-amz-target", fmt::format("{}{}", kTarget, operation)});
    request.body = json::serialize(body);
    if (request.body.size() > limits::kDynamoRequestMax)
      return Error{Code::kInvalid, fmt::format("a request to DynamoDB has at most {} bytes",
                                               limits::kDynamoRequestMax)};
    aws::sign(request, {place_.host, options_.region, "dynamodb"},
              {options_.access_key, options_.secret_key, options_.session_token},
              aws::to_time_text(std::time(nullptr)));
    const auto answer = http_->send(place_.origin, request, limits::kDynamoAnswerMax);
    if (!answer) return answer.error();
    return read_dynamo_answer(answer->status, answer->body);
  }

 private:
  const DynamoOptions options_;
  const Place place_;
  const std::unique_ptr<aws::Http> http_;
};

}  // namespace

Result<std::unique_ptr<DynamoStore>> open_dynamo_store(const DynamoOptions& options,
                                                       std::unique_ptr<aws::Http> http) {
  auto place = find_place(options);
  if (!place) return place.error();
  if (options.access_key.empty() || options.secret_key.empty())
    return bad_option(
        "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
        "credentials_file");
  return std::unique_ptr<DynamoStore>(
      std::make_unique<HttpStore>(options, *std::move(place), std::move(http)));
}

Result<std::unique_ptr<DynamoStore>> open_dynamo_store(const DynamoOptions& options) {
  return open_dynamo_store(options, aws::make_http({.ca_file = options.ca_file,
                                                    .connect_timeout = options.connect_timeout,
                                                    .timeout = options.timeout}));
}

Result<json::object> call_or_fail(DynamoStore& store, std::string_view operation,
                                  const json::object& body) {
  auto answer = store.call(operation, body);
  if (!answer) return answer.error();
  if (answer->failure == DynamoFailure::kNone) return std::move(answer->body);
  return Error{Code::kInvalid, answer->message};
}

}  // namespace pawl::guard
