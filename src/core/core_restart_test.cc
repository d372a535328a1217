// What a restart keeps, and what the core shows when asked.
#include <map>

#include "core/records.h"
#include "core/testlib/core_fixture.h"

namespace pawl::core {
namespace {

// --- Restarts ------------------------------------------------------------------------------------

TEST_F(CoreTest, RestartsNeverTakeALockFromAHolderThatRenews) {  // Hard case 28.
  const Granted holder = takes(exclusive({"a"}, 9s));
  for (int i = 0; i < 20; ++i) {
    after(3s);
    restart();
    const WaiterId rival = waits(exclusive({"a"}));
    EXPECT_FALSE(is_answered(rival));
    EXPECT_TRUE(is_granted(asks(exclusive({"free-" + std::to_string(i)}))))
        << "what is free is granted at once";
    after(5999ms);
    EXPECT_EQ(describe(renews(holder.lease)), "renewed, left 9000ms");
  }
}

TEST_F(CoreTest, ADeadHolderCostsOneTtlPerRestartAndNoMore) {  // Hard case 29.
  takes(exclusive({"a"}, 10s));
  for (int i = 0; i < 10; ++i) {
    after(5s);
    restart();
  }
  const WaiterId next = waits(exclusive({"a"}));
  after(9999ms);
  EXPECT_FALSE(is_answered(next));
  after(1ms);
  EXPECT_TRUE(is_granted(next));
}

TEST_F(CoreTest, ARestartKeepsEverythingThatAHolderWasGranted) {
  Spec spec = exclusive({"a", "b"});
  spec.owner = "me@here:1";
  spec.meta = {{"job", "nightly"}, {"empty", ""}};
  spec.max_hold = 25s;
  const Granted holder = takes(spec);
  const std::string before = describe(inspect("b"));
  renews(holder.lease);
  restart();
  EXPECT_EQ(describe(inspect("b")), before);
  EXPECT_EQ(core_->history("b", 10).size(), 0U);
  after(9s);
  renews(holder.lease);
  after(9s);
  EXPECT_EQ(describe(renews(holder.lease)), "renewed, left 7000ms") << "MAXHOLD began again";
}

// What a standby does: it follows the records, and takes over.
TEST_F(CoreTest, ACoreThatFollowedIsAsOneThatLoadsTheResult) {
  Core follower(options_);
  const auto follow = [&](std::string_view key, std::string_view value) {
    ASSERT_TRUE(follower.load(key, value));
  };
  Spec delayed = exclusive({"closed", "b"}, 5s);
  delayed.delay = 30s;
  delayed.request = kRequest;
  takes(delayed);
  const Granted released = takes(exclusive({"gone"}));
  takes(limit(2, "few"));
  takes(limit(2, "few"));
  takes(shared("many"));
  for (const auto& [key, value] : disk_) follow(key, value);
  const std::string gone = lease_key(released.token);
  releases(released.lease);
  after(5s);  // The first one expires, and keeps its locks closed.
  commit();
  follower.unload(gone);
  follower.unload(gone);
  for (auto record = disk_.rbegin(); record != disk_.rend(); ++record)
    follow(record->first, record->second);
  ASSERT_TRUE(follower.loaded(Token{high_water_}, now_));
  restart();
  Batch followed, loaded;
  follower.write_state(followed);
  core_->write_state(loaded);
  EXPECT_EQ(followed.bytes(), loaded.bytes());
  EXPECT_EQ(describe(follower.inspect("closed", now_)), describe(inspect("closed")));
  EXPECT_EQ(follower.inspect("gone", now_).state, LockState::kFree);
  EXPECT_EQ(follower.totals().locks, core_->totals().locks) << "a lock that nobody has is gone";
  EXPECT_EQ(follower.accounts().total().bytes, core_->accounts().total().bytes);
  EXPECT_FALSE(follower.remembers(kRequest));
}

TEST_F(CoreTest, ACoreThatForgetsWhatItFollowedCanBeginAgain) {
  Core follower(options_);
  takes(exclusive({"a"}));
  for (const auto& [key, value] : disk_) ASSERT_TRUE(follower.load(key, value));
  follower.unload_all();
  EXPECT_EQ(follower.totals().locks, 0U);
  for (const auto& [key, value] : disk_) ASSERT_TRUE(follower.load(key, value));
  ASSERT_TRUE(follower.loaded(Token{high_water_}, now_));
  EXPECT_EQ(follower.totals().leases, 1U);
}

TEST_F(CoreTest, TheWrittenStateIsWhatTheStoreHolds) {
  Spec delayed = exclusive({"closed"}, 1s);
  delayed.delay = 30s;
  takes(delayed);
  Spec full = exclusive({"a", "b"}, 60s);
  full.owner = "me@here:1";
  full.meta = {{"job", "nightly"}};
  full.request = "abcdefghijklmnopqrstuv";
  takes(full);
  const Granted released = takes(exclusive({"released"}, 60s));
  releases(released.lease);
  after(2s);
  commit();
  Batch state;
  core_->write_state(state);
  std::map<std::string, std::string> records;
  for (std::string_view rest = state.bytes(); !rest.empty();) {
    const auto put = take_operation(rest);
    ASSERT_TRUE(put && put->put);
    records.emplace(put->key, put->value);
  }
  EXPECT_EQ(records.size(), 3U) << "two leases and the last token";
  for (const auto& [key, value] : disk_)
    EXPECT_EQ(pawl::core::describe(key, records[key]), pawl::core::describe(key, value));
  EXPECT_TRUE(records == disk_);
}

TEST_F(CoreTest, DamagedRecordsAreRefusedNotLoaded) {
  takes(exclusive({"a"}));
  Core fresh;
  for (const auto& [key, value] : disk_) {
    EXPECT_FALSE(fresh.load(key, value.substr(0, value.size() - 1)));
    EXPECT_FALSE(fresh.load("?" + key, value));
  }
}

TEST_F(CoreTest, TwoLeasesInOneSlotAreDamage) {
  std::string value;
  LeaseRecord record;
  record.terms.mode = Mode::kLimit;
  record.terms.limit = 3;
  record.terms.ttl = 1s;
  record.locks.push_back("a");
  Core fresh;
  for (std::uint64_t n = 1; n <= 2; ++n) {
    record.id = LeaseId{n, n};
    record.phase = Phase::kLive;
    encode(record, value);
    EXPECT_TRUE(fresh.load(lease_key(Token{n}), value));
  }
  value = std::string("\2\0\0\0\0\0\0\0", 8);
  EXPECT_TRUE(fresh.load(kLastTokenKey, value));
  const auto loaded = fresh.loaded(Token{2}, now_);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().detail.find("the same slot"), std::string::npos)
      << loaded.error().detail;
}

TEST_F(CoreTest, ARecordThatClaimsMoreLocksThanALeaseMayHaveIsDamage) {
  std::string value;
  LeaseRecord record;
  record.terms.ttl = 1s;
  record.phase = Phase::kLive;
  const std::string names = "abcdefghijklmnop";
  for (std::size_t i = 0; i < names.size(); ++i)
    record.locks.push_back(std::string_view(names).substr(i, 1));
  encode(record, value);
  EXPECT_TRUE(decode_lease(lease_key(Token{1}), value));
  value[value.size() - 1 - 3 * names.size() - 1] =
      17;  // The count; all that follows it still fits.
  EXPECT_FALSE(decode_lease(lease_key(Token{1}), value));
}

TEST_F(CoreTest, ALeaseBeyondTheHighWaterIsAContradiction) {  // Rule 10: the store lost a part.
  takes(exclusive({"a"}));
  Core fresh;
  for (const auto& [key, value] : disk_) EXPECT_TRUE(fresh.load(key, value));
  EXPECT_FALSE(fresh.loaded(Token{0}, now_));
}

// --- Reads ---------------------------------------------------------------------------------------

TEST_F(CoreTest, HistoryIsNewestFirstUnderEachLockAndBounded) {
  options_.history_epochs = 4;
  restart();
  for (int i = 0; i < 3; ++i) releases(takes(exclusive({"a"})).lease);
  releases(takes(exclusive({"a", "b"})).lease);
  const auto of_a = core_->history("a", 10);
  ASSERT_EQ(of_a.size(), 3U) << "a lease with two locks takes two entries of the ring";
  EXPECT_EQ(of_a[0].token, Token{4});
  EXPECT_EQ(of_a[0].locks, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(of_a[2].token, Token{2});
  EXPECT_EQ(core_->history("a", 1).size(), 1U);
  for (int i = 0; i < 1000; ++i) releases(takes(exclusive({"c"})).lease);
  EXPECT_EQ(core_->history("c", 1000).size(), 4U);
  EXPECT_TRUE(core_->history("a", 10).empty());
}

TEST_F(CoreTest, EveryLockThatStaysIsListedOnceWhateverElseChanges) {
  judged_ = false;
  for (int i = 0; i < 300; ++i) takes(exclusive({"stays/" + std::to_string(i)}));
  std::map<std::string, int> seen;
  std::uint64_t cursor = 0;
  do {
    const LocksPage page = core_->list("stays/", cursor, 7, now_);
    for (const LockView& view : page.locks) ++seen[view.lock];
    cursor = page.cursor;
    releases(takes(exclusive({"comes and goes"})).lease);
    takes(exclusive({"comes/" + std::to_string(cursor)}));
  } while (cursor != 0);
  EXPECT_EQ(seen.size(), 300U);
  for (const auto& [lock, times] : seen) EXPECT_EQ(times, 1) << lock;
}

TEST_F(CoreTest, InspectShowsTheFirstSixteenWaiters) {
  takes(exclusive({"a"}));
  for (int i = 0; i < 20; ++i) waits(exclusive({"a"}));
  EXPECT_EQ(inspect("a").waiters, 20U);
  ASSERT_EQ(inspect("a").queue.size(), 16U);
  EXPECT_EQ(inspect("a").queue[0].owner, "owner 2");
}

TEST_F(CoreTest, AFreeLockRemembersTheGreatestTokenItKnew) {
  const Granted first = takes(shared("a")), second = takes(shared("a"));
  releases(second.lease);
  releases(first.lease);
  EXPECT_EQ(inspect("a").last_token, second.token);
  EXPECT_EQ(inspect("never").last_token, std::nullopt);
}

// --- Events --------------------------------------------------------------------------------------

TEST_F(CoreTest, EachChangeIsOneEventPerLock) {
  const Granted first = takes(exclusive({"a", "b"}));
  const WaiterId next = waits(exclusive({"b"}));
  EXPECT_TRUE(events_.empty()) << "queueing is no event";
  releases(first.lease);
  EXPECT_EQ(events_, (std::vector<std::string>{
                         "released token 1 exclusive lock a owner owner 1 ending released",
                         "released token 1 exclusive lock b owner owner 1 ending released",
                         "granted token 2 exclusive lock b owner owner 2"}));
  commit();
  EXPECT_TRUE(is_granted(next));
  after(10s);
  EXPECT_EQ(
      events_,
      (std::vector<std::string>{"expired token 2 exclusive lock b owner owner 2 ending expired"}));
}

}  // namespace
}  // namespace pawl::core
