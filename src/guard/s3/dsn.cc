#include "guard/s3/dsn.h"

#include <utility>

#include "aws/credentials.h"
#include "guard/dsn_pairs.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kS3Scheme = "s3://";

struct S3Words {
  S3Options options;
  std::string credentials_file;
  std::string profile;
};

Error s3_dsn_error(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

void fill(std::string& field, const char* variable) {
  if (field.empty()) field = aws::from_environment(variable);
}

Result<void> set_word(S3Words& words, std::string_view key, std::string_view value) {
  S3Options& options = words.options;
  if (key == "style") {
    if (value != "path" && value != "virtual") return s3_dsn_error("style is path or virtual");
    options.style = value == "path" ? S3Style::kPath : S3Style::kVirtual;
    return {};
  }
  std::string* field = key == "bucket"             ? &options.bucket
                       : key == "region"           ? &options.region
                       : key == "endpoint"         ? &options.endpoint
                       : key == "ca_file"          ? &options.ca_file
                       : key == "credentials_file" ? &words.credentials_file
                       : key == "profile"          ? &words.profile
                                                   : nullptr;
  if (field != nullptr) {
    *field = value;
    return {};
  }
  if (key == "access_key" || key == "secret_key" || key == "session_token")
    return s3_dsn_error(
        "keys belong into a credentials_file or the variables AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, not into the DSN");
  return s3_dsn_error(
      "a DSN for S3 has bucket, region, endpoint, style (path or virtual), ca_file, "
      "credentials_file and profile, such as bucket=shop region=eu-central-1");
}

}  // namespace

Result<S3Options> parse_s3_dsn(std::string_view text) {
  S3Words words;
  words.options.region.clear();
  if (text.starts_with(kS3Scheme)) {
    words.options.bucket = text.substr(kS3Scheme.size());
    while (words.options.bucket.ends_with('/')) words.options.bucket.pop_back();
    text = {};
  }
  const auto read = read_dsn_pairs(text, [&](std::string_view key, std::string_view value) {
    return set_word(words, key, value);
  });
  if (!read) return read.error();
  S3Options& options = words.options;
  fill(options.region, "AWS_REGION");
  fill(options.region, "AWS_DEFAULT_REGION");
  if (options.region.empty()) options.region = "us-east-1";
  fill(options.endpoint, "AWS_ENDPOINT_URL_S3");
  fill(options.endpoint, "AWS_ENDPOINT_URL");
  fill(options.ca_file, "AWS_CA_BUNDLE");
  auto keys = aws::find_credentials(words.credentials_file, words.profile);
  if (!keys) return keys.error();
  options.access_key = std::move(keys->access_key);
  options.secret_key = std::move(keys->secret_key);
  options.session_token = std::move(keys->session_token);
  return options;
}

}  // namespace pawl::guard
