// Every verb as every kind of user. A verb without a row fails.
#include <array>

#include "server/testlib/access_fixture.h"
#include "server/verbs/table.h"

namespace pawl::server {
namespace {

using wire::Access;
using enum Elsewhere;

// In the order of the table of verbs. The role is written here again on purpose: to loosen one
// takes two decisions.
constexpr std::array kRows{
    PermissionRow{"ACQUIRE", Access::kUse, "ACQUIRE mine/a AND mine/b TTL 1000", kOutside,
                  "ACQUIRE mine/a AND minerals TTL 1000"},
    PermissionRow{"CANCEL", Access::kUse, "CANCEL 1234567890123456789012"},
    PermissionRow{"RENEW", Access::kUse, "RENEW 00112233445566778899aabbccddeeff"},
    PermissionRow{"MRENEW", Access::kUse, "MRENEW 00112233445566778899aabbccddeeff"},
    PermissionRow{"RELEASE", Access::kUse, "RELEASE 00112233445566778899aabbccddeeff"},
    PermissionRow{"INSPECT", Access::kObserve, "INSPECT mine", kOutside, "INSPECT other"},
    PermissionRow{"LOCKS", Access::kObserve, "LOCKS PREFIX mi", kOutside, "LOCKS PREFIX minerals"},
    PermissionRow{"HISTORY", Access::kObserve, "HISTORY mine/a", kOutside, "HISTORY minerals"},
    PermissionRow{"OBSERVE", Access::kObserve, "OBSERVE mine/", kOutside, "OBSERVE other/"},
    PermissionRow{"UNOBSERVE", Access::kObserve, "UNOBSERVE anything"},
    PermissionRow{"ASK", Access::kUse, "ASK mine/a REASON why", kOutside, "ASK minerals"},
    PermissionRow{"BREAK", Access::kAdmin, "BREAK mine/a TOKEN 9999 REASON why", kOutside,
                  "BREAK other TOKEN 9999 REASON why"},
    PermissionRow{"RAISE", Access::kAdmin, "RAISE 50 REASON why", kWholeStore},
    PermissionRow{"BACKUP", Access::kBackup, "BACKUP /nonexistent/copy", kWholeStore},
    PermissionRow{"HANDOVER", Access::kAdmin, "HANDOVER", kWholeStore},
    PermissionRow{"STATUS", Access::kUser, "STATUS"},
    PermissionRow{"HELLO", Access::kNone, "HELLO 3"},
    PermissionRow{"AUTH", Access::kNone, "AUTH boss secret-of-boss"},
    PermissionRow{"PING", Access::kUser, "PING"},
    PermissionRow{"ECHO", Access::kObserve, "ECHO hello"},
    PermissionRow{"QUIT", Access::kNone, "QUIT"},
    PermissionRow{"RESET", Access::kNone, "RESET"},
    PermissionRow{"SELECT", Access::kUser, "SELECT 0"},
    PermissionRow{"CLIENT", Access::kUser, "CLIENT LIST"},
    PermissionRow{"COMMAND", Access::kObserve, "COMMAND COUNT"},
    PermissionRow{"INFO", Access::kObserve, "INFO"},
    PermissionRow{"CONFIG", Access::kObserve, "CONFIG GET save"},
    PermissionRow{"TIME", Access::kObserve, "TIME"},
    PermissionRow{"HELP", Access::kObserve, "HELP"},
};

PermissionAnswer permission_of(std::string reply) {
  if (reply.starts_with("-NOAUTH")) return {Permission::kAuthenticateFirst, std::move(reply)};
  if (reply.starts_with("-NOPERM")) return {Permission::kNotPermitted, std::move(reply)};
  return {Permission::kServed, std::move(reply)};
}

class PermissionsTest : public AccessTest {
 protected:
  Client connect_as_caller(Caller caller) {
    return caller == Caller::kNobody ? connect() : connect_as(name_of(caller));
  }
};

TEST_F(PermissionsTest, TheRowsAreTheVerbs) {
  ASSERT_EQ(kRows.size(), all_verbs().size()) << "a verb has no row: state here who may use it";
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    EXPECT_EQ(kRows[i].name, all_verbs()[i]->name);
    EXPECT_TRUE(kRows[i].here.starts_with(kRows[i].name));
    EXPECT_EQ(kRows[i].needs, all_verbs()[i]->access) << kRows[i].name;
  }
}

TEST_F(PermissionsTest, EveryVerbIsServedOnlyToThePermittedRoles) {
  expect_permissions(kRows, [&](Caller caller, std::string_view request) {
    Client client = connect_as_caller(caller);
    std::string reply = client.ask(std::string(request));
    EXPECT_NE(reply, "") << request;
    return permission_of(std::move(reply));
  });
}

// By name, so that a new verb, or another role for one, does not widen it unseen.
TEST_F(PermissionsTest, TheRoleBackupNeitherTouchesNorShowsLocks) {
  std::string served;
  for (const PermissionRow& row : kRows) {
    Client client = connect_as("copier");
    if (permission_of(client.ask(std::string(row.here))).permission == Permission::kServed)
      served += std::string(row.name) + " ";
  }
  EXPECT_EQ(served, "BACKUP STATUS HELLO AUTH PING QUIT RESET SELECT CLIENT ");
}

TEST_F(PermissionsTest, WithoutUsersEveryVerbIsServedToEveryone) {
  start();
  for (const PermissionRow& row : kRows) {
    Client client = connect();
    EXPECT_EQ(permission_of(client.ask(std::string(row.here))).permission, Permission::kServed)
        << row.here;
  }
}

}  // namespace
}  // namespace pawl::server
