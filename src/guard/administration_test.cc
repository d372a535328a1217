#include "guard/administration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

using testing::HasSubstr;

Status fenced(std::string name) {
  Status status;
  status.guard = std::move(name);
  status.strength = {Strength::kFenced, {}};
  return status;
}

TEST(Strength, ErrorOfItsOwnWeakensAGuard) {
  Status status = fenced("orders");
  weaken_by_problems(status,
                     std::vector<Problem>{{"error", "orders", "t", "trigger disabled", ""}});
  EXPECT_EQ(status.strength.strength, Strength::kBestEffort);
  EXPECT_EQ(status.strength.because, "t: trigger disabled");
}

TEST(Strength, WarningOrErrorOfAnotherGuardDoesNotWeaken) {
  Status status = fenced("orders");
  weaken_by_problems(status, std::vector<Problem>{{"warning", "orders", "t", "slow", ""},
                                                  {"error", "items", "t", "gone", ""}});
  EXPECT_EQ(status.strength.strength, Strength::kFenced);
}

TEST(Strength, UnreadableProblemsWeaken) {
  Status status = fenced("orders");
  weaken_by_problems(status, Error{Code::kDenied, "permission denied"});
  EXPECT_EQ(status.strength.strength, Strength::kBestEffort);
  EXPECT_THAT(status.strength.because, HasSubstr("permission denied"));
}

}  // namespace
}  // namespace pawl::guard
