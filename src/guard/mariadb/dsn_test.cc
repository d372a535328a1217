#include "guard/mariadb/dsn.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(MariaDsn, AnEmptyOneLeavesEverythingToTheOptionFiles) {
  const auto dsn = parse_maria_dsn("");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->host, "");
  EXPECT_EQ(dsn->port, 0);
}

TEST(MariaDsn, PairsAreReadInAnyOrder) {
  const auto dsn = parse_maria_dsn("  port=3307 database=shop host=127.0.0.1  user=app ");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->host, "127.0.0.1");
  EXPECT_EQ(dsn->port, 3307);
  EXPECT_EQ(dsn->user, "app");
  EXPECT_EQ(dsn->database, "shop");
}

TEST(MariaDsn, APasswordIsRefusedAndNeverRepeated) {
  const auto dsn = parse_maria_dsn("host=h password=secret7");
  ASSERT_FALSE(dsn);
  EXPECT_EQ(dsn.error().code, Code::kInvalid);
  EXPECT_EQ(dsn.error().detail.find("secret7"), std::string::npos);
}

TEST(MariaDsn, WhatIsNoPairOfOursIsInvalid) {
  for (const char* text : {"port=0", "port=70000", "port=3306x", "port=", "nonsense", "hots=h"})
    EXPECT_FALSE(parse_maria_dsn(text)) << text;
}

}  // namespace
}  // namespace pawl::guard
