#include "guard/etcd/dsn.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(EtcdDsn, DefaultsToTheLocalEtcd) {
  const auto dsn = parse_etcd_dsn("");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->endpoints, "127.0.0.1:2379");
  EXPECT_FALSE(dsn->tls);
}

TEST(EtcdDsn, ReadsPairs) {
  const auto dsn = parse_etcd_dsn("endpoints=a:1,b:2 user=app password_file=/p tls_ca=/ca");
  ASSERT_TRUE(dsn);
  EXPECT_EQ(dsn->endpoints, "a:1,b:2");
  EXPECT_EQ(dsn->user, "app");
  EXPECT_EQ(dsn->password_file, "/p");
  EXPECT_EQ(dsn->tls_ca, "/ca");
  EXPECT_TRUE(dsn->tls);
}

TEST(EtcdDsn, ReadsAListOfEndpointsAndUrls) {
  EXPECT_EQ(parse_etcd_dsn("a:1,b:2")->endpoints, "a:1,b:2");
  EXPECT_EQ(parse_etcd_dsn("http://a:1/,http://b:2")->endpoints, "a:1,b:2");
  EXPECT_FALSE(parse_etcd_dsn("http://a:1")->tls);
  EXPECT_TRUE(parse_etcd_dsn("endpoints=https://a:1")->tls);
}

TEST(EtcdDsn, RefusesAPasswordWithoutRepeatingIt) {
  for (const char* text : {"password=hidden", "http://app:hidden@a:1"}) {
    const auto dsn = parse_etcd_dsn(text);
    ASSERT_FALSE(dsn) << text;
    EXPECT_NE(dsn.error().detail.find("ETCDCTL_PASSWORD"), std::string::npos);
    EXPECT_EQ(dsn.error().detail.find("hidden"), std::string::npos);
  }
}

TEST(EtcdDsn, UnknownKeyIsAnError) {
  EXPECT_FALSE(parse_etcd_dsn("port=2379"));
  EXPECT_FALSE(parse_etcd_dsn("tls=maybe"));
}

}  // namespace
}  // namespace pawl::guard
