#include "guard/dynamodb/dsn.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

class DynamoDsnText : public testing::Test {
 protected:
  DynamoDsnText() {
    ::setenv("AWS_ACCESS_KEY_ID", "AK", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "SK", 1);
  }
};

TEST_F(DynamoDsnText, WordsAreRead) {
  const auto options =
      parse_dynamo_dsn("region=eu-central-1 endpoint=http://127.0.0.1:8000 guards=my_guards");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->region, "eu-central-1");
  EXPECT_EQ(options->endpoint, "http://127.0.0.1:8000");
  EXPECT_EQ(options->guards_table, "my_guards");
  EXPECT_EQ(options->access_key + options->secret_key, "AKSK");
}

TEST_F(DynamoDsnText, SecretsAndUnknownWordsAreRefused) {
  const auto options = parse_dynamo_dsn("secret_key=SK");
  ASSERT_FALSE(options);
  EXPECT_NE(options.error().detail.find("credentials_file"), std::string::npos);
  EXPECT_FALSE(parse_dynamo_dsn("bucket=shop"));
}

}  // namespace
}  // namespace pawl::guard
