#include "client/holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ThreadNumber kMine{1}, kTheirs{2};
constexpr LeaseNumber kFirst{1}, kSecond{2};

Holder holder(std::vector<std::string> locks, ThreadNumber thread, Mode mode = Mode::kExclusive) {
  return {.locks = std::move(locks), .mode = mode, .thread = thread};
}
std::shared_ptr<Holder> shared(Holder made) {
  return std::make_shared<Holder>(std::move(made));
}

TEST(Holders, OnlyTheAcquiringThreadWouldWaitForItself) {
  Holders holders;
  holders.add(kFirst, shared(holder({"a", "b"}, kMine)));
  EXPECT_THAT(holders.held_by_same_thread(holder({"x", "b"}, kMine)), ElementsAre(kFirst));
  EXPECT_THAT(holders.held_by_same_thread(holder({"x"}, kMine)), IsEmpty());
  EXPECT_THAT(holders.held_by_same_thread(holder({"b"}, kTheirs)), IsEmpty());
  EXPECT_THAT(holders.on_locks({"b"}), ElementsAre(kFirst));
}

TEST(Holders, AsyncAcquiresBelongToNoThread) {
  Holders holders;
  holders.add(kFirst, shared(holder({"a"}, kNoThread)));
  EXPECT_THAT(holders.held_by_same_thread(holder({"a"}, kNoThread)), IsEmpty());
}

TEST(Holders, SharedAndLimitedLocksMayBeAcquiredAgain) {
  Holders holders;
  holders.add(kFirst, shared(holder({"a"}, kMine, Mode::kShared)));
  holders.add(kSecond, shared(holder({"b"}, kMine, Mode::kLimit)));
  EXPECT_THAT(holders.held_by_same_thread(holder({"a"}, kMine, Mode::kShared)), IsEmpty());
  EXPECT_THAT(holders.held_by_same_thread(holder({"b"}, kMine, Mode::kLimit)), IsEmpty());
  EXPECT_THAT(holders.held_by_same_thread(holder({"a"}, kMine, Mode::kExclusive)),
              ElementsAre(kFirst));
  EXPECT_THAT(holders.held_by_same_thread(holder({"b"}, kMine, Mode::kShared)),
              ElementsAre(kSecond));
}

TEST(Holders, RemovedLeaseExcludesNobody) {
  Holders holders;
  holders.add(kFirst, shared(holder({"a"}, kMine, Mode::kShared)));
  holders.add(kSecond, shared(holder({"a"}, kMine, Mode::kShared)));
  holders.remove(kFirst);
  EXPECT_EQ(holders.find(kFirst), nullptr);
  EXPECT_THAT(holders.on_locks({"a"}), ElementsAre(kSecond));
  holders.remove(kSecond);
  holders.remove(kSecond);
  EXPECT_THAT(holders.on_locks({"a"}), IsEmpty());
}

}  // namespace
}  // namespace pawl::client
