#include "guard/s3/dsn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

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

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void fill(std::string& field, const char* variable) {
  if (field.empty()) field = from_environment(variable);
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

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// As Amazon's tools: the variables first, then the file.
Result<void> find_credentials(S3Words& words) {
  S3Options& options = words.options;
  if (words.credentials_file.empty()) {
    fill(options.access_key, "AWS_ACCESS_KEY_ID");
    fill(options.secret_key, "AWS_SECRET_ACCESS_KEY");
    fill(options.session_token, "AWS_SESSION_TOKEN");
    if (!options.access_key.empty()) return {};
    fill(words.credentials_file, "AWS_SHARED_CREDENTIALS_FILE");
  }
  const bool named = !words.credentials_file.empty();
  if (!named) words.credentials_file = from_environment("HOME") + "/.aws/credentials";
  fill(words.profile, "AWS_PROFILE");
  std::ifstream file(words.credentials_file);
  if (!file && named)
    return s3_dsn_error(fmt::format("no credentials can be read from {}", words.credentials_file));
  if (!file) return {};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return read_s3_credentials(text, words.profile.empty() ? "default" : words.profile, options);
}

}  // namespace

Result<void> read_s3_credentials(std::string_view file, std::string_view profile,
                                 S3Options& options) {
  bool here = false;
  bool found = false;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = trim(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.starts_with('[')) {
      here = line == fmt::format("[{}]", profile);
      found = found || here;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!here || equals == line.npos) continue;
    const std::string_view key = trim(line.substr(0, equals));
    const std::string_view value = trim(line.substr(equals + 1));
    if (key == "aws_access_key_id") options.access_key = value;
    if (key == "aws_secret_access_key") options.secret_key = value;
    if (key == "aws_session_token") options.session_token = value;
  }
  if (found) return {};
  return s3_dsn_error(fmt::format("the credentials file has no profile [{}]", profile));
}

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
  if (const auto done = find_credentials(words); !done) return done.error();
  return options;
}

}  // namespace pawl::guard
