#include "cli/command_cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace pawl::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kUnified =
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kVersion1 =
    "31 25 0:27 / /sys/fs/cgroup ro,nosuid shared:8 - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:28 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory\n"
    "33 31 0:29 / /sys/fs/cgroup/systemd rw shared:11 - cgroup cgroup rw,xattr,name=systemd\n";
constexpr const char* kUnifiedBesideVersion1 =
    "34 31 0:30 / /sys/fs/cgroup/unified rw shared:12 - cgroup2 cgroup2 rw,nsdelegate\n";

Result<std::string> own(const std::string& cgroup, const std::string& mountinfo) {
  std::istringstream lines(cgroup), mounts(mountinfo);
  return own_cgroup(lines, mounts);
}

std::string refusal(const std::string& cgroup, const std::string& mountinfo) {
  const auto found = own(cgroup, mountinfo);
  return found ? "found " + *found : found.error().detail;
}

TEST(OwnCgroup, IsBelowTheMountOfVersion2) {
  const auto found = own("0::/user.slice/session-1.scope\n", kUnified);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(*found, "/sys/fs/cgroup/user.slice/session-1.scope");
  EXPECT_EQ(*own("0::/\n", kUnified), "/sys/fs/cgroup");
}

TEST(OwnCgroup, OnAHybridHostIsInTheTreeOfVersion2) {
  const std::string lines = "4:memory:/user.slice\n1:name=systemd:/user.slice\n0::/user.slice\n";
  const auto found = own(lines, std::string(kVersion1) + kUnifiedBesideVersion1);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(*found, "/sys/fs/cgroup/unified/user.slice");
}

TEST(OwnCgroup, OnAHostWithVersion1ThereIsNone) {
  EXPECT_THAT(refusal("4:memory:/user.slice\n1:name=systemd:/user.slice\n", kVersion1),
              HasSubstr("version 1 only"));
  EXPECT_THAT(refusal("", ""), HasSubstr("version 1 only, or none"));
}

TEST(OwnCgroup, WithoutAMountOfVersion2ThereIsNone) {
  EXPECT_THAT(refusal("4:memory:/a\n0::/a\n", kVersion1), HasSubstr("not mounted"));
}

TEST(OwnCgroup, WithAMountOfAnotherPartThereIsNone) {
  EXPECT_THAT(refusal("0::/../other\n", kUnified), HasSubstr("outside"));
  EXPECT_THAT(
      refusal("0::/docker/1\n", "30 24 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n"),
      HasSubstr("only a part"));
}

}  // namespace
}  // namespace pawl::cli
