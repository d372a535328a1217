#include "guard/redis/dsn.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(RedisDsn, EmptyIsTheServerOnThisMachine) {
  const auto dsn = parse_redis_dsn("");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->host, "127.0.0.1");
  EXPECT_EQ(dsn->port, 6379);
}

TEST(RedisDsn, PairsAreRead) {
  const auto dsn = parse_redis_dsn("host=db1 port=7001  user=app db=2 form=script");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->host, "db1");
  EXPECT_EQ(dsn->port, 7001);
  EXPECT_EQ(dsn->user, "app");
  EXPECT_EQ(dsn->db, 2U);
  EXPECT_TRUE(dsn->script);
}

TEST(RedisDsn, UriIsRead) {
  const auto dsn = parse_redis_dsn("redis://app@db1:7001/2");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->host, "db1");
  EXPECT_EQ(dsn->port, 7001);
  EXPECT_EQ(dsn->user, "app");
  EXPECT_EQ(dsn->db, 2U);
}

TEST(RedisDsn, PasswordIsRefusedAndNotRepeated) {
  for (const char* text : {"password=hunter2", "redis://app:hunter2@db1"}) {
    const auto dsn = parse_redis_dsn(text);
    ASSERT_FALSE(dsn);
    EXPECT_EQ(dsn.error().detail.find("hunter2"), std::string::npos);
    EXPECT_NE(dsn.error().detail.find("REDISCLI_AUTH"), std::string::npos);
  }
}

TEST(RedisDsn, UnknownKeyAndBadNumbersAreRefused) {
  for (const char* text : {"hots=db1", "port=0", "port=x", "port=70000", "db=", "db=-1", "form=lua",
                           "redis://h:p", "redis://h:0"})
    EXPECT_FALSE(parse_redis_dsn(text)) << text;
}

}  // namespace
}  // namespace pawl::guard
