#include "cli/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace pawl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Credentials : public testing::Test {
 protected:
  Credentials() { unsetenv("PAWL_AUTH"); }
  ~Credentials() override {
    unsetenv("PAWL_AUTH");
    std::remove(path_.c_str());
  }
  const std::string& file(const std::string& text) {
    std::ofstream(path_, std::ios::trunc) << text;
    return path_;
  }
  const std::string path_ = testing::TempDir() + "pawl-credentials-test";
};

TEST_F(Credentials, SecretIsEverythingAfterTheFirstColon) {
  const auto auth = parse_credentials("ci:a:b", "here");
  ASSERT_TRUE(auth);
  EXPECT_EQ(auth->user, "ci");
  EXPECT_EQ(auth->secret, "a:b");
}

TEST_F(Credentials, ErrorsNameTheSourceNotTheSecret) {
  for (const char* text :
       {"", "hunter2", ":hunter2", "hunter2:", "ci:hunter2 ", "ci:hunter2\t", "ci: hunter2"}) {
    const auto auth = parse_credentials(text, "PAWL_AUTH");
    ASSERT_FALSE(auth) << text;
    EXPECT_THAT(auth.error().detail,
                AllOf(HasSubstr("PAWL_AUTH: expected user:secret"), Not(HasSubstr("hunter2"))));
  }
}

TEST_F(Credentials, FileWinsOverTheEnvironment) {
  EXPECT_EQ(find_credentials("")->user, "");
  setenv("PAWL_AUTH", "env:secret", 1);
  EXPECT_EQ(find_credentials("")->user, "env");
  EXPECT_EQ(find_credentials(file("ci:secret\r\nother:x\n"))->secret, "secret");
  EXPECT_EQ(find_credentials(file("ci:secret"))->user, "ci");
}

TEST_F(Credentials, MissingOrEmptyFileIsNamed) {
  EXPECT_THAT(find_credentials("no/such").error().detail,
              HasSubstr("--auth-file no/such: No such file"));
  EXPECT_THAT(find_credentials(file("")).error().detail, HasSubstr("is empty"));
}

}  // namespace
}  // namespace pawl::cli
