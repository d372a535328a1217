#include "guard_contract/resource_name.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(ResourceName, FirstColonSplits) {
  EXPECT_EQ(split_resource("orders"), (ResourceName{"orders", {}}));
  EXPECT_EQ(split_resource("accounts:7"), (ResourceName{"accounts", "7"}));
  EXPECT_EQ(split_resource("files:a:b"), (ResourceName{"files", "a:b"}));
  EXPECT_EQ(split_resource("accounts:"), (ResourceName{"accounts", ""}));
}

TEST(ResourceName, IsPrintedAsItWasRead) {
  for (const char* text : {"orders", "accounts:7", "files:a:b", "accounts:"}) {
    EXPECT_EQ(to_text(*parse_resource(text)), text);
  }
}

TEST(ResourceName, LimitsCountCharactersNotBytes) {
  EXPECT_TRUE(parse_resource(std::string(kGuardNameMax, 'g')));
  EXPECT_FALSE(parse_resource(std::string(kGuardNameMax + 1, 'g')));
  std::string key;
  for (std::size_t i = 0; i < kResourceKeyMax; ++i) key += "é";
  EXPECT_TRUE(parse_resource("orders:" + key));
  EXPECT_FALSE(parse_resource("orders:" + key + "é"));
}

TEST(ResourceName, GuardNameMustNotBeEmptyOrHoldControlCharacters) {
  for (const char* text : {"", ":7", "ord\ners", "\x7f"}) {
    EXPECT_EQ(parse_resource(text).error().code, Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace pawl::guard
