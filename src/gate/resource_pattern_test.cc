#include "gate/resource_pattern.h"

#include <gtest/gtest.h>

namespace pawl::gate {
namespace {

std::string match(const std::string& pattern, const std::string& path) {
  const auto parsed = ResourcePattern::parse(pattern);
  if (!parsed) return parsed.error().detail;
  return parsed->match(path).value_or("none");
}

TEST(ResourcePattern, EverythingBelowAResourceIsThatResource) {
  EXPECT_EQ(match("path:/accounts/{id}", "/accounts/7"), "/accounts/7");
  EXPECT_EQ(match("path:/accounts/{id}", "/accounts/7/notes/3"), "/accounts/7");
  EXPECT_EQ(match("path:/accounts/{id}", "/accounts"), "none");
  EXPECT_EQ(match("path:/accounts/{id}", "/users/7"), "none");
  EXPECT_EQ(match("path:/reports", "/reports/2026"), "/reports");
  EXPECT_EQ(match("path:/{tenant}/reports/{id}", "/a/reports/b"), "/a/reports/b");
  EXPECT_EQ(match("path:/", "/anything/at/all"), "/");
}

TEST(ResourcePattern, AMalformedPatternIsRefused) {
  for (const char* text : {"/accounts", "path:accounts", "path:/a/{}", "path:/a{b}", "path:/a/*",
                           "path:/a//b", "path:/../a", "path:/%61"})
    EXPECT_FALSE(ResourcePattern::parse(text)) << text;
}

TEST(ResourcePattern, APathWithTwoSpellingsIsRefused) {
  for (const char* target :
       {"/accounts/%37", "/accounts//7", "/accounts/./7", "/x/../accounts/7", "/accounts/7/",
        "/accounts\\7", "/accounts%2F7", "/accounts%5C7", "/accounts/7;v=1", "/accounts/%3b",
        "/accounts/%zz", "/accounts/%2", "//accounts/7", "/accounts/%00"})
    EXPECT_FALSE(canonical_path(target)) << target;
}

TEST(ResourcePattern, AQueryIsNotPartOfTheResource) {
  EXPECT_EQ(*canonical_path("/accounts/7?to=/../8;x"), "/accounts/7");
  EXPECT_EQ(*canonical_path("/accounts/M%C3%BCller"), "/accounts/M%C3%BCller");
  EXPECT_EQ(*canonical_path("/"), "/");
}

}  // namespace
}  // namespace pawl::gate
