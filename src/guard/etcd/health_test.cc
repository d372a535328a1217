#include "guard/etcd/health.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

std::vector<etcd::EndpointView> member(const std::string& version,
                                       const std::vector<std::string>& errors = {}) {
  etcd::StatusResponse status;
  status.version = version;
  status.errors = errors;
  return {{.name = "a:1", .usable = true, .error = "", .status = status}};
}

TEST(EtcdHealth, VersionsThatLoseWritesAreNamed) {
  for (const char* version : {"3.5.0", "3.5.2", "3.3.27"})
    EXPECT_EQ(find_etcd_weaknesses(member(version)).size(), 1u) << version;
  for (const char* version : {"3.4.0", "3.4.23", "3.5.3", "3.5.21", "3.6.1"})
    EXPECT_TRUE(find_etcd_weaknesses(member(version)).empty()) << version;
}

TEST(EtcdHealth, AlarmsAreNamed) {
  EXPECT_EQ(find_etcd_weaknesses(member("3.4.23", {"memberID:1 alarm:CORRUPT"})).size(), 1u);
  EXPECT_EQ(find_etcd_alarms(member("3.4.23", {"memberID:1 alarm:NOSPACE"})).size(), 1u);
  EXPECT_TRUE(find_etcd_alarms(member("3.4.23")).empty());
}

etcd::Permission may(std::string key, std::string end, bool write = true) {
  return {.may_read = true, .may_write = write, .key = std::move(key), .range_end = std::move(end)};
}

TEST(EtcdHealth, PermissionReachesAKeyThatItSharesWithThePattern) {
  const EtcdKeys orders = keys_of_pattern("orders/*");
  const std::string all(1, '\0');
  EXPECT_TRUE(may_write(may("orders/", "orders0"), orders));
  EXPECT_TRUE(may_write(may("orders/7", ""), orders));
  EXPECT_TRUE(may_write(may("o", "p"), orders));
  EXPECT_TRUE(may_write(may(all, all), orders));
  EXPECT_TRUE(may_write(may("a", all), orders));
  EXPECT_FALSE(may_write(may("orders/7", "", false), orders));
  EXPECT_FALSE(may_write(may("orders", ""), orders));
  EXPECT_FALSE(may_write(may("a", "orders/"), orders));
  EXPECT_FALSE(may_write(may("orders0", all), orders));
  EXPECT_FALSE(may_write(may("app/", "app0"), orders));
  EXPECT_TRUE(may_write(may("orders", ""), keys_of_pattern("orders")));
}

}  // namespace
}  // namespace pawl::guard
