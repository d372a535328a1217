// After a restore: a new era, no lease, and no grant until the longest TTL has passed. Hard case
// 42.
#include "core/records.h"
#include "core/testlib/core_fixture.h"

namespace pawl::core {
namespace {

constexpr std::uint64_t kEra = limits::kTokensPerEra;

class RestoredCoreTest : public CoreTest {
 protected:
  // As `pawld restore` does with a backup in which the last token was `last`.
  void restore(std::uint64_t last, Millis wait = 600s) {
    auto restored = restored_records(Token{last}, wait);
    ASSERT_TRUE(restored) << restored.error().detail;
    disk_.clear();
    for (const auto& [key, value] : restored->records) disk_[key] = value;
    high_water_ = restored->last_token.value;
    restart();
  }
};

TEST_F(RestoredCoreTest, TokensBeginTheNextEra) {
  for (const std::uint64_t last : {std::uint64_t{0}, std::uint64_t{41}, kEra - 1}) {
    restore(last, 0ms);
    EXPECT_EQ(takes(exclusive({"a"})).token, Token{kEra + 1}) << last;
  }
  restore(kEra, 0ms);
  EXPECT_EQ(takes(exclusive({"a"})).token, Token{2 * kEra + 1});
  restore(5 * kEra + 7, 0ms);
  EXPECT_EQ(takes(exclusive({"a"})).token.value / kEra, 6U);
  EXPECT_FALSE(restored_records(Token{limits::kTokenMax - 5}, 0ms)) << "there is no era left";
}

TEST_F(RestoredCoreTest, NothingIsGrantedUntilTheWaitIsOver) {
  restore(41);
  EXPECT_EQ(core_->restoring_for(now_), 600s);
  const WaiterId first = waits(exclusive({"a"}), 3600s);
  const WaiterId both = waits(exclusive({"b", "c"}), 3600s);
  const WaiterId second = waits(exclusive({"a"}), 3600s);
  const WaiterId impatient = waits(exclusive({"d"}), 60s);
  const WaiterId at_once = asks(exclusive({"e"}));
  EXPECT_EQ(said(at_once), "refused: restoring");
  EXPECT_EQ(std::get<Refused>(answer(at_once)).left, 600s);
  after(599'999ms);
  EXPECT_FALSE(is_answered(first) || is_answered(both) || is_answered(second));
  EXPECT_FALSE(is_granted(impatient));
  EXPECT_TRUE(is_answered(impatient));
  EXPECT_EQ(std::get<Refused>(answer(asks(exclusive({"e"})))).left, 1ms);
  EXPECT_EQ(core_->next_deadline(), now_.tick + 1ms);

  after(1ms);
  EXPECT_TRUE(is_granted(first) && is_granted(both));
  EXPECT_FALSE(is_answered(second)) << "it waits for the first, as ever";
  EXPECT_GT(grant_of(first).token, Token{kEra});
  EXPECT_EQ(core_->restoring_for(now_), 0ms);
  EXPECT_TRUE(is_granted(asks(exclusive({"e"}))));
}

TEST_F(RestoredCoreTest, ARestartNeverShortensTheWait) {
  restore(41);
  for (int i = 0; i < 3; ++i) {
    after(400s);
    commit();
    restart();
    EXPECT_EQ(core_->restoring_for(now_), 600s);
  }
  after(600s);
  EXPECT_TRUE(is_granted(asks(exclusive({"a"}))));
}

TEST_F(RestoredCoreTest, OnceItIsOverItStaysOver) {
  restore(41);
  const WaiterId waiter = waits(exclusive({"a"}), 3600s);
  after(600s);
  commit();
  EXPECT_TRUE(is_granted(waiter));
  restart();
  EXPECT_EQ(core_->restoring_for(now_), 0ms);
  EXPECT_TRUE(is_granted(asks(exclusive({"b"}))));
}

TEST_F(RestoredCoreTest, HangUpOrCancelDuringTheWaitIsNotGranted) {
  restore(41);
  const WaiterId gone = waits(exclusive({"a"}), 3600s);
  Spec spec = exclusive({"b"});
  spec.wait = 3600s;
  const WaiterId cancelled = asks_again(spec);
  hangs_up(gone);
  EXPECT_TRUE(cancels(kRequest));
  after(600s);
  EXPECT_FALSE(is_answered(gone));
  EXPECT_FALSE(is_granted(cancelled));
  EXPECT_EQ(core_->totals().locks, 0U);
}

TEST_F(RestoredCoreTest, DamagedRecordsOfARestoreAreRefused) {
  Core fresh;
  EXPECT_FALSE(fresh.load(kRestoredKey, "short"));
  EXPECT_FALSE(fresh.load(kRestoredKey, std::string(8, '\xff')));
}

}  // namespace
}  // namespace pawl::core
