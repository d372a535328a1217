// libpawl and a pawld that has users.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "e2e/pawld_process.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

void write_users(const std::string& dir) {
  const std::string path = dir + "/users";
  // The secret is "abc"; docs/reference/auth.md says how it is made.
  std::ofstream(path) << "ci use sha256:00000000000000000000000000000000:"
                         "af1f0da87873662f687d436bbf2c38eb309ce126fefc1ff4dea6b59b179e846b ci\n";
  if (::chmod(path.c_str(), 0600) != 0) throw std::runtime_error("chmod");
}

class LibPawlAuth : public testing::Test {
 protected:
  Code refusal(Auth auth, const std::string& lock) {
    Client client(pawld.address(),
                  {.auth = std::move(auth), .answer_timeout = 200ms, .call_timeout = 30s});
    const auto lease = client.acquire(lock, {.wait = 30s});
    return lease ? Code::kUnknown : lease.error().code;
  }

  PawldProcess pawld{"auth_file = \"%d/users\"", write_users};
};

TEST_F(LibPawlAuth, EveryConnectionAuthenticates) {
  Client client(pawld.address(), {.auth = {"ci", "abc"}});
  auto lease = client.acquire("ci/deploy", {.ttl = 15s});
  ASSERT_TRUE(lease) << lease.error().detail;
  pawld.kill();
  pawld.start_again();
  const auto before = lease->deadline_boottime();
  EXPECT_TRUE(eventually([&] { return lease->deadline_boottime() > before; }))
      << "renewed on a new connection";
}

TEST_F(LibPawlAuth, WrongCredentialsAreDeniedAtOnce) {
  EXPECT_EQ(refusal({}, "ci/deploy"), Code::kDenied);
  EXPECT_EQ(refusal({"ci", "wrong"}, "ci/deploy"), Code::kDenied);
  EXPECT_EQ(refusal({"stranger", "abc"}, "ci/deploy"), Code::kDenied);
  EXPECT_EQ(refusal({"ci", "abc"}, "other"), Code::kDenied);
}

}  // namespace
}  // namespace pawl
