// AWS Signature Version 4: how requests to S3 and DynamoDB, and to stores that are compatible with
// them, are signed. Pure: the time is passed in.
//
//   Request request{.method = "GET", .path = "/orders.csv"};
//   sign(request, {.host = "shop.s3.amazonaws.com", .region = "eu-central-1", .service = "s3"},
//        credentials, "20261117T194400Z");
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::aws {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token = {};  // of temporary credentials; else empty
};

struct Header {
  std::string name;  // in lower case
  std::string value;
};

struct Request {
  std::string method;
  std::string path;                                             // as it is sent: encode_path()
  std::vector<std::pair<std::string, std::string>> query = {};  // not encoded
  std::vector<Header> headers = {};                             // without host
  std::string body = {};
};

struct Scope {
  std::string host;  // as the Host header has it: with the port unless it is the usual one
  std::string region;
  std::string service;
};

// Adds x-amz-date, x-amz-content-sha256 (for s3), x-amz-security-token and authorization.
void sign(Request& request, const Scope& scope, const Credentials& credentials,
          std::string_view time);

// Everything but A–Z a–z 0–9 - . _ ~ as %XX; in paths '/' stays as well.
[[nodiscard]] std::string encode(std::string_view text);
[[nodiscard]] std::string encode_path(std::string_view path);
// "a=1&b=%20", sorted, as it is signed and sent. Empty for none.
[[nodiscard]] std::string query_text(const Request& request);

// "20261117T194400Z"
[[nodiscard]] std::string to_time_text(std::time_t time);
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace pawl::aws
