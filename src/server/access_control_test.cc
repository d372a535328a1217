// AccessControl alone: users, the delay after a wrong secret, and what is refused.
#include "server/access_control.h"

#include <gmock/gmock.h>

#include "server/testlib/engine_fixture.h"
#include "server/testlib/test_users.h"

namespace pawl::server {
namespace {

using testing::HasSubstr;
using AuthResult = AccessControl::AuthResult;

class AccessControlTest : public testing::Test {
 protected:
  void SetUp() override {
    access.set_users(Users(everyone()));
    access.reset(session);
  }
  AuthResult authenticate(std::string_view user, std::string_view secret) {
    return access.authenticate(session, user, secret, now);
  }

  KeptLog log;
  Telemetry telemetry;
  AccessControl access{log, telemetry};
  Session session{ConnectionId{1}, "peer"};
  Tick now{};
};

TEST_F(AccessControlTest, WithoutUsersEverySessionIsAdmin) {
  AccessControl open(log, telemetry);
  open.reset(session);
  EXPECT_EQ(session.access, wire::Access::kAdmin);
  EXPECT_FALSE(open.identify(session, "boss")) << "there are none to be";
}

TEST_F(AccessControlTest, TheRightSecretGivesTheRoleOfItsUser) {
  EXPECT_EQ(session.access, wire::Access::kNone);
  EXPECT_EQ(authenticate("worker", secret_of("worker")), AuthResult::kAuthenticated);
  EXPECT_EQ(session.access, wire::Access::kUse);
  EXPECT_EQ(session.user_name(), "worker");
}

TEST_F(AccessControlTest, AWrongSecretDelaysAndKeepsTheUser) {
  authenticate("worker", secret_of("worker"));
  EXPECT_EQ(authenticate("boss", "guess"), AuthResult::kDelayed);
  EXPECT_TRUE(session.auth_delayed);
  EXPECT_EQ(session.user_name(), "worker");
  EXPECT_EQ(telemetry.wrong_secrets, 1U);
  EXPECT_EQ(access.next_deadline(), now + 1s);
  EXPECT_FALSE(access.next_delay_over(now + 999ms));
  EXPECT_EQ(access.next_delay_over(now + 1s), session.id());
  access.clear_auth_delay(session);
  EXPECT_EQ(access.next_deadline(), kNever);
}

TEST_F(AccessControlTest, ASecretWithoutAUserIsNotAGuess) {
  EXPECT_EQ(authenticate("", secret_of("worker")), AuthResult::kUserMissing);
  EXPECT_EQ(telemetry.wrong_secrets, 0U);
}

TEST_F(AccessControlTest, WrongSecretsAreLoggedAtMostOnceASecond) {
  for (int i = 0; i < 3; ++i) {
    authenticate("boss", "guess");
    access.clear_auth_delay(session);
  }
  ASSERT_EQ(log.lines.size(), 1U);
  now += 1s;
  authenticate("a-secret-in-the-wrong-place", "x");
  ASSERT_EQ(log.lines.size(), 2U);
  EXPECT_THAT(log.lines[1], HasSubstr("an unknown user from peer (2 more since the last line)"));
}

TEST_F(AccessControlTest, ARefreshKeepsOnlyUsersThatDidNotChange) {
  authenticate("worker", secret_of("worker"));
  EXPECT_TRUE(access.refresh(session));
  access.set_users(Users({user("worker", wire::Access::kAdmin)}));
  EXPECT_FALSE(access.refresh(session));
}

TEST_F(AccessControlTest, AUserWithPrefixesReachesOnlyItsLocks) {
  authenticate("limited", secret_of("limited"));
  EXPECT_FALSE(AccessControl::check_lock(session, "mine/a"));
  EXPECT_TRUE(AccessControl::check_lock(session, "other"));
  EXPECT_FALSE(AccessControl::check_prefix(session, "mi"));
  EXPECT_TRUE(AccessControl::check_prefix(session, "other/"));
  EXPECT_TRUE(AccessControl::check_whole_store(session, "RAISE"));
  std::vector<std::string> locks{"mine/a", "other"};
  AccessControl::hide_locks(session, locks);
  EXPECT_THAT(locks, testing::ElementsAre("mine/a"));
}

TEST_F(AccessControlTest, BreakingNeedsAllLocksOfTheLease) {
  authenticate("limited", secret_of("limited"));
  core::LockView view;
  view.holders.resize(1);
  view.holders[0].token = Token{5};
  view.holders[0].locks = {"mine/a", "other"};
  EXPECT_TRUE(AccessControl::check_break(session, view, Token{5}));
  EXPECT_FALSE(AccessControl::check_break(session, view, Token{6})) << "that token holds nothing";
  view.holders[0].locks = {"mine/a", "mine/b"};
  EXPECT_FALSE(AccessControl::check_break(session, view, Token{5}));
}

TEST_F(AccessControlTest, RequestIdsAreScopedToTheUser) {
  const std::string id(limits::kRequestMax, 'x');
  EXPECT_EQ(ScopedRequestId(session, id).text(), id);
  authenticate("worker", secret_of("worker"));
  EXPECT_EQ(ScopedRequestId(session, id).text(), "worker:" + id);
  EXPECT_EQ(ScopedRequestId(session, "").text(), "");
}

}  // namespace
}  // namespace pawl::server
