// Asking the holders of a lock to let go: who hears of it, how often, and for how long.
#include "core/testlib/core_fixture.h"

namespace pawl::core {
namespace {

class CoreAsksTest : public CoreTest {
 protected:
  static constexpr AccountId kFirstUser = 1, kSecondUser = 2;

  // The number that comes with a renewal; 0: nobody has asked.
  std::uint64_t heard_by(LeaseId lease) {
    const Outcome outcome = renews(lease);
    EXPECT_TRUE(std::holds_alternative<Renewed>(outcome)) << describe(outcome);
    return std::holds_alternative<Renewed>(outcome) ? std::get<Renewed>(outcome).ask : 0;
  }
};

TEST_F(CoreAsksTest, AHolderHearsOfAnAskWithItsNextRenewal) {
  const Granted held = takes(exclusive({"a"}));
  EXPECT_EQ(heard_by(held.lease), 0U);
  EXPECT_EQ(asks_to_let_go("a"), "asked, holders 1 token 1");
  EXPECT_EQ(events_, std::vector<std::string>{
                         "release_wanted token 1 exclusive lock a owner bob because deploy"});
  const std::uint64_t number = heard_by(held.lease);
  EXPECT_NE(number, 0U);
  EXPECT_EQ(heard_by(held.lease), number) << "a lost reply must not lose the ask";
  const auto ask = core_->ask_for(held.lease);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->number, number);
  EXPECT_EQ(ask->lock, "a");
  EXPECT_EQ(ask->by, "bob");
  EXPECT_EQ(ask->reason, "deploy");
}

TEST_F(CoreAsksTest, AnAskChangesNothingThatIsStored) {
  takes(exclusive({"a"}));
  asks_to_let_go("a");
  EXPECT_EQ(submit(), BatchId{});
}

TEST_F(CoreAsksTest, NobodyIsAskedForALockThatIsNotHeld) {
  EXPECT_EQ(asks_to_let_go("a"), "not_held, holders 0 token 0");
  EXPECT_TRUE(events_.empty());
  Spec spec = exclusive({"b"}, 1s);
  spec.delay = 10s;
  takes(spec);
  after(1s);
  commit();
  ASSERT_EQ(state("b"), LockState::kClosed);
  EXPECT_EQ(asks_to_let_go("b"), "not_held, holders 0 token 0");
  EXPECT_EQ(core_->asks(), 0U);
}

TEST_F(CoreAsksTest, AskingAgainWithinASecondMakesNoEvent) {
  const Granted held = takes(exclusive({"a"}));
  asks_to_let_go("a");
  const std::uint64_t first = heard_by(held.lease);
  pass(limits::kAskAgainAfter - 1ms);
  EXPECT_EQ(asks_to_let_go("a"), "already_asked, holders 1 token 1");
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(heard_by(held.lease), first);
  pass(1ms);
  EXPECT_EQ(asks_to_let_go("a"), "asked, holders 1 token 1");
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_GT(heard_by(held.lease), first);
}

TEST_F(CoreAsksTest, TheNextHolderWasNotAsked) {
  const Granted held = takes(exclusive({"a"}));
  const WaiterId next = waits(exclusive({"a"}));
  asks_to_let_go("a");
  EXPECT_TRUE(releases(held.lease));
  commit();
  EXPECT_EQ(heard_by(grant_of(next).lease), 0U);
  EXPECT_EQ(core_->asks(), 0U);
  EXPECT_EQ(asks_to_let_go("a"), "asked, holders 1 token 2") << "it may be asked at once";
}

TEST_F(CoreAsksTest, EveryReaderThatHeldTheLockHearsOfIt) {
  const Granted first = takes(shared("a"));
  const Granted second = takes(shared("a"));
  EXPECT_EQ(asks_to_let_go("a"), "asked, holders 2 token 2");
  const Granted later = takes(shared("a"));
  EXPECT_NE(heard_by(first.lease), 0U);
  EXPECT_EQ(heard_by(later.lease), 0U);
  releases(first.lease);
  EXPECT_NE(heard_by(second.lease), 0U);
  releases(second.lease);
  EXPECT_EQ(core_->asks(), 0U);
  EXPECT_EQ(heard_by(later.lease), 0U);
}

TEST_F(CoreAsksTest, OneLockOfSeveralIsEnough) {
  const Granted held = takes(exclusive({"a", "b", "c"}));
  asks_to_let_go("c");
  const std::uint64_t first = heard_by(held.lease);
  asks_to_let_go("a");
  EXPECT_GT(heard_by(held.lease), first);
  EXPECT_EQ(core_->ask_for(held.lease)->lock, "a") << "the newest";
  releases(held.lease);
  EXPECT_EQ(core_->asks(), 0U);
  EXPECT_FALSE(core_->ask_for(held.lease));
}

TEST_F(CoreAsksTest, AnAskEndsWithItsLeaseHoweverThatEnds) {
  takes(exclusive({"a"}, 1s));
  const Granted broken = takes(exclusive({"b"}));
  asks_to_let_go("a");
  asks_to_let_go("b");
  EXPECT_EQ(core_->asks(), 2U);
  after(1s);
  EXPECT_EQ(core_->asks(), 1U);
  breaks("b", broken.token, true);
  EXPECT_EQ(core_->asks(), 0U);
}

TEST_F(CoreAsksTest, AnAskAfterARestartHasAGreaterNumber) {
  const Granted held = takes(exclusive({"a"}));
  asks_to_let_go("a");
  const std::uint64_t before = heard_by(held.lease);
  now_.wall.value += 1;
  restart();
  EXPECT_EQ(heard_by(held.lease), 0U);
  asks_to_let_go("a");
  EXPECT_GT(heard_by(held.lease), before);
}

TEST_F(CoreAsksTest, AUserWithTooManyAsksDoesNotKeepOthersFromAsking) {
  options_.asks = {.in_all = 3, .per_user = 1};
  restart();
  for (const char* lock : {"a", "b", "c", "d"}) takes(exclusive({lock}));
  asks_to_let_go("a", kFirstUser);
  EXPECT_EQ(asks_to_let_go("b", kFirstUser), "refused: asks full");
  EXPECT_EQ(asks_to_let_go("b", kSecondUser), "asked, holders 1 token 2");
  EXPECT_EQ(asks_to_let_go("c"), "asked, holders 1 token 3");
  EXPECT_EQ(asks_to_let_go("d"), "refused: asks full");
  pass(limits::kAskAgainAfter);
  EXPECT_EQ(asks_to_let_go("b", kFirstUser), "refused: asks full") << "in the place of another's";
  EXPECT_EQ(asks_to_let_go("a", kFirstUser), "asked, holders 1 token 1")
      << "in the place of its own";
}

}  // namespace
}  // namespace pawl::core
