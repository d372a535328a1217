#include "guard/s3/dsn.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

class S3Dsn : public testing::Test {
 protected:
  S3Dsn() {
    ::setenv("AWS_ACCESS_KEY_ID", "AK", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "SK", 1);
  }
};

TEST_F(S3Dsn, WordsAreRead) {
  const auto options = parse_s3_dsn(
      "bucket=shop region=eu-central-1 endpoint=http://127.0.0.1:7480 style=virtual ca_file=/a");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->bucket, "shop");
  EXPECT_EQ(options->region, "eu-central-1");
  EXPECT_EQ(options->endpoint, "http://127.0.0.1:7480");
  EXPECT_EQ(options->style, S3Style::kVirtual);
  EXPECT_EQ(options->ca_file, "/a");
  EXPECT_EQ(options->access_key, "AK");
}

TEST_F(S3Dsn, UriNamesABucket) {
  EXPECT_EQ(parse_s3_dsn("s3://shop/")->bucket, "shop");
}

TEST_F(S3Dsn, SecretsAreRefused) {
  const auto options = parse_s3_dsn("bucket=shop secret_key=SK");
  ASSERT_FALSE(options);
  EXPECT_NE(options.error().detail.find("credentials_file"), std::string::npos);
}

TEST_F(S3Dsn, UnknownWordIsNamed) {
  EXPECT_FALSE(parse_s3_dsn("bukket=shop"));
  EXPECT_FALSE(parse_s3_dsn("style=other"));
}

}  // namespace
}  // namespace pawl::guard
