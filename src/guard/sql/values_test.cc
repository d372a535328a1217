#include "guard/sql/values.h"

#include <gtest/gtest.h>

#include <map>

#include "guard/sql/states.h"

namespace pawl::guard {
namespace {

TEST(SqlValues, EmptyIsNullAndNullIsZero) {
  EXPECT_EQ(given(std::string{}), std::nullopt);
  EXPECT_EQ(given(std::optional<bool>{}), std::nullopt);
  EXPECT_EQ(given(std::optional<bool>{false}), "0");
  EXPECT_EQ(given(std::optional<int>{7}), "7");
  EXPECT_EQ(to_number(std::nullopt), 0u);
  EXPECT_EQ(to_number("34"), 34u);
}

TEST(SqlValues, LineFeedsSeparateNames) {
  EXPECT_TRUE(lines_of(std::nullopt).empty());
  EXPECT_TRUE(lines_of("").empty());
  EXPECT_EQ(lines_of("a\nb c"), (std::vector<std::string>{"a", "b c"}));
}

TEST(SqlValues, StatusIsReadInTheSpellingOfEitherDatabase) {
  for (const char* yes : {"t", "1"}) {
    std::map<std::string, std::string, std::less<>> row{{"guard", "orders"},
                                                        {"require_token", yes},
                                                        {"fence", "34"},
                                                        {"tables", "a\nb"},
                                                        {"stale", "2"}};
    const Status status = to_status([&](std::string_view column) {
      const auto found = row.find(column);
      return found == row.end() ? SqlValue{} : SqlValue{found->second};
    });
    EXPECT_EQ(status.guard, "orders");
    EXPECT_TRUE(status.require_token);
    EXPECT_EQ(status.fence, 34u);
    EXPECT_EQ(status.percent, std::nullopt);
    EXPECT_EQ(status.tables.size(), 2u);
    EXPECT_EQ(status.stale, 2u);
  }
}

TEST(SqlValues, OlderPawlDoesNotReplaceANewerContract) {
  EXPECT_TRUE(check_not_newer(std::nullopt));
  EXPECT_TRUE(check_not_newer(Installation{"0.1.0", kGuardContract}));
  EXPECT_EQ(check_not_newer(Installation{"9.0.0", kGuardContract + 1}).error().code,
            Code::kInvalid);
  EXPECT_FALSE(require_installation(std::nullopt));
}

TEST(SqlStates, CheckedRowOfAModeThatDoesNotRefuseIsLetThrough) {
  const auto shadow = to_decision({"stale", "34", "shadow", true}, 33);
  ASSERT_TRUE(shadow);
  EXPECT_TRUE(shadow->let_through);
  EXPECT_EQ(shadow->max, 34u);
  EXPECT_FALSE(to_decision({"stale", "34", "enforce", true}, 33)->let_through);
  EXPECT_FALSE(to_decision({"perhaps", "34", "enforce", true}, 33));
}

}  // namespace
}  // namespace pawl::guard
