#include "cli/run_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

const client::GrantedLease kHeld{{.lease = {0x11, 0x22},
                                  .token = Token{34},
                                  .floor = Token{34},
                                  .slot = std::nullopt,
                                  .ttl = Millis(15'000)},
                                 client::Instant(Nanos(77))};

TEST(RunEnvironment, InnermostTokenReplacesInheritedOnes) {  // Hard case 16.
  const auto environment = command_environment(
      {"HOME=/root", "PAWL_TOKEN=33", "PAWL_LOCK=outer", "PAWL_SLOT=4", "PAWL_AUTH=secret"},
      {{"a", "b"}, "me", "127.0.0.1:7295", "outer\nfurther\n"}, kHeld);
  EXPECT_THAT(
      environment,
      ElementsAre("HOME=/root", "PAWL_AUTH=secret", "PAWL_TOKEN=34",
                  "PAWL_LOCK=a\nb\nouter\nfurther", "PAWL_LEASE=00000000000000110000000000000022",
                  "PAWL_OWNER=me", "PAWL_ADDR=127.0.0.1:7295", "PAWL_TTL_MS=15000",
                  "PAWL_DEADLINE_BOOTTIME_NS=77", "PAWL_FLOOR=34", "PAWL_HELD=1"));
}

TEST(RunEnvironment, SlotIsSetOnlyWithALimit) {
  auto held = kHeld;
  EXPECT_THAT(command_environment({}, {}, held), Not(Contains(StartsWith("PAWL_SLOT="))));
  held.slot = 0;
  EXPECT_THAT(command_environment({}, {}, held), Contains("PAWL_SLOT=0"));
}

TEST(RunEnvironment, HeldLockIsFoundByItsWholeName) {  // Hard case 16.
  EXPECT_EQ(already_held({"x", "b"}, "a\nb"), "b");
  EXPECT_EQ(already_held({"a"}, "a/b\nba"), std::nullopt);
  EXPECT_EQ(already_held({"a"}, ""), std::nullopt);
}

}  // namespace
}  // namespace pawl::cli
