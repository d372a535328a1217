#include "aws/credentials.h"

#include <gtest/gtest.h>

namespace pawl::aws {
namespace {

TEST(Credentials, FileHasProfiles) {
  constexpr std::string_view kFile =
      "[default]\naws_access_key_id = A\naws_secret_access_key=B\n\n[ci]\r\n"
      "aws_access_key_id=C\r\naws_secret_access_key=D\r\naws_session_token=E\r\n";
  const auto keys = read_credentials(kFile, "ci");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->access_key + keys->secret_key + keys->session_token, "CDE");
  EXPECT_FALSE(read_credentials(kFile, "other"));
}

}  // namespace
}  // namespace pawl::aws
