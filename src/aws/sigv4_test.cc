// The expected signatures are those that AWS publishes: "Signature calculations for the
// Authorization header" of S3 with its example keys, and the test suite of Signature Version 4.
#include "aws/sigv4.h"

#include <gtest/gtest.h>

namespace pawl::aws {
namespace {

const Credentials kS3Example{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
const Scope kS3Scope{"examplebucket.s3.amazonaws.com", "us-east-1", "s3"};
constexpr const char* kS3Time = "20130524T000000Z";

const Credentials kSuite{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
const Scope kSuiteScope{"example.amazonaws.com", "us-east-1", "service"};
constexpr const char* kSuiteTime = "20150830T123600Z";

std::string value_of(const Request& request, const std::string& name) {
  for (const Header& header : request.headers) {
    if (header.name == name) return header.value;
  }
  return "";
}

std::string signature(Request request, const Scope& scope, const Credentials& credentials,
                      std::string_view time) {
  sign(request, scope, credentials, time);
  const std::string text = value_of(request, "authorization");
  return text.substr(text.rfind('=') + 1);
}

TEST(SigV4, GetOfARangeIsSignedAsPublished) {
  EXPECT_EQ(signature({.method = "GET", .path = "/test.txt", .headers = {{"range", "bytes=0-9"}}},
                      kS3Scope, kS3Example, kS3Time),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, PutWithABodyAndAnEncodedNameIsSignedAsPublished) {
  EXPECT_EQ(signature({.method = "PUT",
                       .path = encode_path("/test$file.text"),
                       .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                   {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                       .body = "Welcome to Amazon S3."},
                      kS3Scope, kS3Example, kS3Time),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, SubResourceWithoutAValueIsSignedAsPublished) {
  EXPECT_EQ(signature({.method = "GET", .path = "/", .query = {{"lifecycle", ""}}}, kS3Scope,
                      kS3Example, kS3Time),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, ListWithParametersIsSignedAsPublished) {
  EXPECT_EQ(signature({.method = "GET", .path = "/", .query = {{"prefix", "J"}, {"max-keys", "2"}}},
                      kS3Scope, kS3Example, kS3Time),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, OtherServicesAreSignedAsInTheTestSuite) {
  EXPECT_EQ(signature({.method = "GET", .path = "/"}, kSuiteScope, kSuite, kSuiteTime),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(
      signature(
          {.method = "GET", .path = "/", .query = {{"Param2", "value2"}, {"Param1", "value1"}}},
          kSuiteScope, kSuite, kSuiteTime),
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(SigV4, SessionTokenIsSentAndSigned) {
  Request request{.method = "GET", .path = "/"};
  Credentials temporary = kS3Example;
  temporary.session_token = "token";
  sign(request, kS3Scope, temporary, kS3Time);
  EXPECT_EQ(value_of(request, "x-amz-security-token"), "token");
  EXPECT_NE(value_of(request, "authorization")
                .find("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            std::string::npos);
}

TEST(SigV4, SpacesInAHeaderCountOnce) {
  EXPECT_EQ(signature({.method = "GET", .path = "/", .headers = {{"my-header", "  a   b  "}}},
                      kSuiteScope, kSuite, kSuiteTime),
            signature({.method = "GET", .path = "/", .headers = {{"my-header", "a b"}}},
                      kSuiteScope, kSuite, kSuiteTime));
}

TEST(SigV4, EveryByteOfANameIsEncoded) {
  EXPECT_EQ(encode_path("/a b/ü+%"), "/a%20b/%C3%BC%2B%25");
  EXPECT_EQ(encode("a/b~"), "a%2Fb~");
}

TEST(SigV4, TimeIsWrittenInUtc) {
  EXPECT_EQ(to_time_text(1369353600), kS3Time);
}

}  // namespace
}  // namespace pawl::aws
