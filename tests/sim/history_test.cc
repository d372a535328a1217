// The checker must see what it is for: one planted fault each, and a clean history.
#include "sim/history.h"

#include <gtest/gtest.h>

namespace pawl::sim {
namespace {

Moment at(int ms) {
  return Moment(Millis(ms));
}

Attempt held(int client, std::uint64_t token, int asked, int answered, int until) {
  Attempt a;
  a.client = client;
  a.request = std::to_string(token);
  a.locks = {"a"};
  a.asked = at(asked);
  a.answered = at(answered);
  a.token = Token{token};
  a.believed_until = at(until);
  return a;
}

TEST(Checker, AcceptsACleanHistory) {
  EXPECT_TRUE(check({held(1, 1, 0, 10, 100), held(2, 2, 5, 100, 200), held(1, 5, 150, 210, 220)}).empty());
}
TEST(Checker, SeesOneTokenGivenTwice) {
  EXPECT_EQ(check({held(1, 1, 0, 10, 20), held(2, 1, 5, 30, 40)}).size(), 1u);
}
TEST(Checker, SeesATokenThatWentBack) {
  EXPECT_EQ(check({held(1, 7, 0, 10, 20), held(2, 6, 15, 30, 40)}).size(), 1u);
}
TEST(Checker, AllowsConcurrentRequestsInAnyOrder) {
  EXPECT_TRUE(check({held(1, 7, 0, 10, 20), held(2, 6, 9, 30, 40)}).empty());
}
TEST(Checker, SeesTwoWhoBelieveToHoldOneLock) {
  EXPECT_FALSE(check({held(1, 1, 0, 10, 51), held(2, 2, 5, 50, 60)}).empty());
}
TEST(Checker, SeesMoreHoldersThanTheLimit) {
  auto a = held(1, 1, 0, 10, 100), b = held(2, 2, 0, 11, 100), c = held(3, 3, 0, 12, 100);
  for (Attempt* attempt : {&a, &b, &c}) {
    attempt->mode = Mode::kLimit;
    attempt->limit = 2;
  }
  EXPECT_TRUE(check({a, b}).empty());
  EXPECT_EQ(check({a, b, c}).size(), 1u);
}
TEST(Checker, SeesALeaseLostBeforeItsTime) {
  auto a = held(1, 1, 0, 10, 100);
  a.lost_early = "expired";
  EXPECT_EQ(check({a}).size(), 1u);
}

}  // namespace
}  // namespace pawl::sim
