#include "guard/mariadb/connection.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

// Found by the nemesis: libmariadb calls a statement that could not be sent -1, as it calls the end
// of the results.
TEST(MariaStatement, OnAConnectionThatIsGoneItIsNoSuccess) {
  const Connection never_connected(mysql_init(nullptr), mysql_close);
  const MariaOutcome outcome = execute(never_connected.get(), "SELECT 1");
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.failure->disconnected);
}

TEST(MariaFailures, StaleIsFinalAndKeepsTheGuardsWords) {
  const Error error = to_error({1644, "PW002", "pawl: stale token 33 for orders", false});
  EXPECT_EQ(error.code, Code::kStaleToken);
  EXPECT_EQ(error.detail, "stale token 33 for orders (PW002)");
}

TEST(MariaFailures, AnAdvanceThatWaitsIsBusy) {
  EXPECT_EQ(to_error({1644, "PW007", "pawl: advance of orders", false}).code, Code::kBusy);
}

TEST(MariaFailures, ADeadlockAndALockWaitAreNeverStale) {
  EXPECT_EQ(to_error({1213, "40001", "Deadlock found", false}).code, Code::kUnavailable);
  EXPECT_EQ(to_error({1205, "HY000", "Lock wait timeout exceeded", false}).code,
            Code::kUnavailable);
  EXPECT_EQ(to_error({1644, "40001", "pawl: the fence moved", false}).code, Code::kUnavailable);
}

TEST(MariaFailures, OnlyWhatMayPassAtOnceIsTriedAgain) {
  EXPECT_TRUE(may_pass_again({1213, "40001", "Deadlock found", false}));
  EXPECT_TRUE(may_pass_again({1020, "HY000", "Record has changed since last read", false}));
  EXPECT_FALSE(may_pass_again(
      {1205, "HY000", "Lock wait timeout exceeded", false}));  // It has waited for long.
  EXPECT_FALSE(may_pass_again({1644, "PW002", "pawl: stale token", false}));
}

TEST(MariaFailures, AMissingRightIsDeniedAndAMissingGuardSaysHowToInstallIt) {
  EXPECT_EQ(to_error({1370, "42000", "execute command denied", false}).code, Code::kDenied);
  const Error error = to_error({1305, "42000", "PROCEDURE pawl.status does not exist", false});
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_NE(error.detail.find("pawl guard install mariadb"), std::string::npos);
}

TEST(MariaFailures, ABrokenConnectionIsUnavailableWhateverItSays) {
  EXPECT_EQ(to_error({2013, "HY000", "Lost connection", true}).code, Code::kUnavailable);
  EXPECT_EQ(to_error({2002, "HY000", "Can't connect", false}).code, Code::kUnavailable);
}

}  // namespace
}  // namespace pawl::guard
