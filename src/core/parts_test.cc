// The core's parts on their own: index, wheel, history, records, holders, waiters, changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/random.h"
#include "core/changes.h"
#include "core/hash.h"
#include "core/hash_index.h"
#include "core/history.h"
#include "core/holders.h"
#include "core/records.h"
#include "core/restore_wait.h"
#include "core/timer_wheel.h"
#include "core/waiters.h"

namespace pawl::core {
namespace {

TEST(HashIndex, AgreesWithAMapUnderRandomInsertsAndErases) {
  SeededRandom random(7);
  HashIndex index;
  std::vector<std::uint64_t> hashes(2000);
  for (auto& hash : hashes) hash = random.below(300);  // Many collisions.
  std::unordered_map<Index, bool> present;
  for (int step = 0; step < 50'000; ++step) {
    const auto item = static_cast<Index>(random.below(hashes.size()));
    if (present[item]) {
      index.erase(hashes[item], item);
    } else {
      index.insert(hashes[item], item);
    }
    present[item] = !present[item];
    const auto probe = static_cast<Index>(random.below(hashes.size()));
    const Index found = index.find(hashes[probe], [&](Index i) { return i == probe; });
    ASSERT_EQ(found, present[probe] ? probe : kNone);
  }
}

TEST(HashIndex, AReplacedItemIsFoundInPlaceOfTheFormerOne) {
  HashIndex index;
  for (Index item = 0; item < 100; ++item) index.insert(item % 7, item);  // Many collisions.
  for (Index item = 0; item < 100; ++item) index.replace(item % 7, item, 100 + item);
  EXPECT_EQ(index.size(), 100u);
  for (Index item = 0; item < 100; ++item) {
    EXPECT_FALSE(index.erase_if_found(item % 7, item));
    EXPECT_TRUE(index.erase_if_found(item % 7, 100 + item));
  }
  EXPECT_EQ(index.size(), 0u);
}

struct Item {
  TimerLink timer;
};

TEST(TimerWheel, PopsEveryItemInOrderAndNeverEarly) {
  SeededRandom random(3);
  Slab<Item> items;
  TimerWheel<Item> wheel(items);
  std::multimap<std::uint64_t, Index> model;
  std::uint64_t now = random.below(1 << 20);
  wheel.start(now);
  std::vector<Index> indices;
  for (int i = 0; i < 300; ++i) indices.push_back(items.add());
  for (int step = 0; step < 200'000; ++step) {
    const Index item = indices[random.below(indices.size())];
    if (items[item].timer.slot == 0) {
      const std::uint64_t due = now + 1 + random.below(std::uint64_t{1} << random.below(28));
      wheel.arm(item, due);
      model.emplace(due, item);
    } else if (random.below(4) == 0) {
      const auto range = model.equal_range(items[item].timer.due);
      for (auto it = range.first; it != range.second; ++it) {
        if (it->second != item) continue;
        model.erase(it);
        break;
      }
      wheel.disarm(item);
    }
    if (!model.empty()) {
      ASSERT_LE(wheel.next_due(), model.begin()->first);
    }
    now += random.below(std::uint64_t{1} << random.below(20));
    for (Index popped = wheel.pop(now); popped != kNone; popped = wheel.pop(now)) {
      ASSERT_FALSE(model.empty());
      ASSERT_LE(model.begin()->first, now);
      ASSERT_EQ(items[popped].timer.due, model.begin()->first);
      const auto range = model.equal_range(items[popped].timer.due);
      const auto it = std::find_if(range.first, range.second,
                                   [&](const auto& e) { return e.second == popped; });
      ASSERT_NE(it, range.second);
      model.erase(it);
    }
    ASSERT_TRUE(model.empty() || model.begin()->first > now);
  }
}

TEST(TimerWheel, FindsWhatIsArmedForADayAhead) {
  Slab<Item> items;
  TimerWheel<Item> wheel(items);
  wheel.start(0);
  const Index item = items.add();
  const std::uint64_t day = 24ULL * 60 * 60 * 1000;
  wheel.arm(item, day);
  EXPECT_EQ(wheel.pop(day - 1), kNone);
  EXPECT_EQ(wheel.pop(day), item);
}

TEST(TimerWheel, CrossesAnyPowerOfTwoOfUptime) {
  for (unsigned bit = 1; bit < 51; ++bit) {
    Slab<Item> items;
    TimerWheel<Item> wheel(items);
    const std::uint64_t edge = std::uint64_t{1} << bit;
    wheel.start(edge - 1);
    const Index item = items.add();
    wheel.arm(item, edge + 7);
    EXPECT_EQ(wheel.pop(edge + 6), kNone) << bit;
    EXPECT_EQ(wheel.pop(edge + 7), item) << bit;
  }
}

Epoch epoch(std::string_view lock, std::uint64_t token) {
  Epoch e;
  e.lock = Text(lock);
  e.lock_hash = hash_bytes(lock, 1);
  e.token = Token{token};
  e.lease = LeaseId{token, token * 7919};
  e.first = true;
  return e;
}

TEST(History, ShowsTheNewestFirstAndForgetsTheOldest) {
  History history(1, {.epochs = 5});
  for (std::uint64_t token = 1; token <= 12; ++token)
    history.add(epoch(token % 3 == 0 ? "c" : "a", token));
  const auto a = history.of("a", 100);
  ASSERT_EQ(a.size(), 3u);  // 8, 10, 11 of the last five 8..12
  EXPECT_EQ(a[0].token.value, 11u);
  EXPECT_EQ(a[2].token.value, 8u);
  EXPECT_EQ(history.of("c", 1).size(), 1u);
  EXPECT_EQ(history.last_token("c"), Token{12});
  EXPECT_FALSE(history.lost(LeaseId{7, 7 * 7919}).ending);
  EXPECT_EQ(history.lost(LeaseId{8, 8 * 7919}).token, Token{8});
}

// H4: 6,300 leases of 16 long names took 873 MB, for each epoch had all of them.
TEST(History, IsBoundedInBytesAndKeepsTheNamesOfALeaseOnce) {
  constexpr std::size_t kBytes = 100'000;
  History history(1, {.epochs = 1000, .bytes = kBytes});
  std::uint64_t kept = 0;
  for (std::uint64_t token = 1; token <= 100; ++token) {
    const std::string a(500, 'a'), b(500, 'b');
    const auto names = std::make_shared<const std::string>(a + '\n' + b);
    for (const std::uint16_t at : {std::uint16_t{0}, std::uint16_t{501}}) {
      Epoch e = epoch(at == 0 ? a : b, token);
      e.lock = Text();
      e.locks = names;
      e.name_at = at;
      e.name_size = 500;
      e.first = at == 0;
      history.add(std::move(e));
    }
    EXPECT_LE(history.bytes(), kBytes);
    kept = history.of(b, 1000).size();
  }
  EXPECT_EQ(history.of(std::string(500, 'b'), 1)[0].locks.size(), 2U);
  EXPECT_GE(kept, kBytes / (1001 + 2 * sizeof(Epoch)) - 1) << "each name is counted once";
  EXPECT_LT(kept, 100U);
  EXPECT_FALSE(history.lost(LeaseId{1, 7919}).ending);
  EXPECT_EQ(history.lost(LeaseId{100, 100 * 7919}).token, Token{100});
}

TEST(History, LastTokenIsTheGreatestEvenWhenAnOlderReaderEndedLater) {
  History history(1, {.epochs = 5});
  history.add(epoch("a", 9));
  history.add(epoch("a", 4));
  EXPECT_EQ(history.last_token("a"), Token{9});
}

// "01 ff" as two bytes; spaces are for the reader.
std::string hex_bytes(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    while (digits[i] == ' ') ++i;
    bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

LeaseRecord sample() {
  LeaseRecord r;
  r.token = Token{33};
  r.id = LeaseId{1, 2};
  r.terms.ttl = Millis(15'000);
  r.owner = "alice";
  r.request = "0123456789abcdefghijkl";
  r.locks.push_back("a");
  r.locks.push_back("b");
  r.meta = std::string_view("\x01\x01\x00k\x01\x00v", 7);
  return r;
}

TEST(Records, RoundTrip) {
  std::string value;
  encode(sample(), value);
  const std::string key = lease_key(Token{33});
  const auto back = decode_lease(key, value);
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(back->token, Token{33});
  ASSERT_EQ(back->locks.size(), 2u);
  EXPECT_EQ(back->locks[1], "b");
  EXPECT_EQ(back->request, sample().request);
  ASSERT_EQ(decode_meta(back->meta).size(), 1u);
  EXPECT_EQ(decode_meta(back->meta)[0].second, "v");
}

// Journals that older versions wrote must load: the layout at the top of records.h, byte by byte.
TEST(Records, BytesOfALeaseAreFixed) {
  LeaseRecord record = sample();
  record.phase = Phase::kBreaking;
  record.terms = {.ttl = Millis(0x01020304), .delay = Millis(0x0506), .max_hold = Millis(0x0708)};
  record.waited_ms = 0x090a0b0c;
  record.granted = UnixMs{0x0d0e0f};
  record.floor = Token{33};
  std::string value;
  encode(record, value);
  const std::string expected =
      hex_bytes(
          "01 02 0100000000000000 0200000000000000 00 0100 0000 04030201 0c0b0a09 06050000 "
          "0807000000000000 0f0e0d0000000000 2100000000000000 0500") +
      "alice" + hex_bytes("1600") + "0123456789abcdefghijkl" + hex_bytes("02 0100") + "a" +
      hex_bytes("0100") + "b" + hex_bytes("01 0100") + "k" + hex_bytes("0100") + "v";
  EXPECT_EQ(value, expected);
  EXPECT_EQ(lease_key(record.token), "L" + hex_bytes("0000000000000021"));
}

TEST(Records, AnyTruncationIsDamageNotAWrongLease) {
  std::string value;
  encode(sample(), value);
  const std::string key = lease_key(Token{33});
  for (std::size_t cut = 0; cut < value.size(); ++cut)
    EXPECT_FALSE(decode_lease(key, value.substr(0, cut))) << cut;
  EXPECT_FALSE(decode_lease(key, value + "x"));
}

// Rule 10: what no core could have written is damage, and is refused before it can crash one.
TEST(Records, ImpossibleRecordsAreDamage) {
  const std::string key = lease_key(Token{33});
  const auto refused = [&](auto change) {
    LeaseRecord record = sample();
    change(record);
    std::string value;
    encode(record, value);
    return !decode_lease(key, value);
  };
  EXPECT_FALSE(refused([](LeaseRecord&) {}));
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.phase = Phase::kClosed; }));  // Without a delay.
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.phase = Phase::kUnused; }));
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.terms.mode = Mode::kShared; }));  // Two locks.
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.terms.limit = 3; }));             // Exclusive.
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.terms.ttl = Millis(0); }));
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.terms.max_hold = Millis(-1); }));  // 2^64 - 1.
  EXPECT_TRUE(refused([](LeaseRecord& r) { r.locks.push_back("a"); }));         // Twice.
  EXPECT_TRUE(refused([](LeaseRecord& r) {
    r.locks = {};
    r.locks.push_back("a");
    r.terms.mode = Mode::kLimit;
    r.terms.limit = 2;
    r.slot = 2;
  }));
}

TEST(Records, DumpShowsNoSecrets) {
  std::string value;
  encode(sample(), value);
  const std::string line = describe(lease_key(Token{33}), value);
  EXPECT_NE(line.find("33"), std::string::npos);
  EXPECT_EQ(line.find("0123456789abcdefghijkl"), std::string::npos);
}

// --- Holders -------------------------------------------------------------------------------------

// A lease on one lock, with a token greater than those before.
class HoldersTest : public testing::Test {
 protected:
  Index hold(std::string_view lock, const LeaseTerms& terms, std::uint16_t slot = 0) {
    LeaseRecord record;
    record.token = Token{++last_token_};
    record.floor = record.token;
    record.id = LeaseId{1, last_token_};
    record.terms = terms;
    record.slot = slot;
    record.locks.push_back(lock);
    const Index held = holders_.locks.find_or_add(lock);
    const Index lease = holders_.add_lease(record, {&held, 1}, kNone);
    holders_.join(held, lease);
    return lease;
  }
  [[nodiscard]] const Lock& lock(std::string_view name) {
    return holders_.locks.items[holders_.locks.find_or_add(name)];
  }
  static LeaseTerms limit(std::uint32_t n) { return {.mode = Mode::kLimit, .limit = n}; }

  const LeaseTerms exclusive_{};
  const LeaseTerms shared_{.mode = Mode::kShared};
  Holders holders_{7};
  std::uint64_t last_token_ = 0;
};

TEST_F(HoldersTest, ReadersShareWithReadersOnly) {
  hold("a", shared_);
  EXPECT_TRUE(holders_.admits(lock("a"), shared_));
  EXPECT_FALSE(holders_.admits(lock("a"), exclusive_));
  EXPECT_FALSE(holders_.admits(lock("a"), limit(5)));
}

TEST_F(HoldersTest, TheLeastLimitOfAllHoldersCounts) {
  hold("a", limit(3), 0);
  hold("a", limit(2), 1);
  EXPECT_FALSE(holders_.admits(lock("a"), limit(9)));
}

TEST_F(HoldersTest, FreeSlotIsTheLeastThatNoHolderHas) {
  hold("a", limit(5), 0);
  hold("a", limit(5), 2);
  EXPECT_EQ(holders_.free_slot(lock("a")), 1);
}

TEST_F(HoldersTest, FloorIsTheSmallestLiveToken) {
  const Index first = hold("a", shared_);
  hold("a", shared_);
  EXPECT_EQ(holders_.floor_of(lock("a"), Token{9}), Token{1});
  holders_.leases.items[first].phase = Phase::kClosed;
  EXPECT_EQ(holders_.floor_of(lock("a"), Token{9}), Token{2});
}

TEST_F(HoldersTest, AHolderInTheMiddleCanLeave) {
  hold("a", shared_);
  const Index middle = hold("a", shared_);
  const Index last = hold("a", shared_);
  holders_.leave(holders_.locks.find("a"), middle);
  EXPECT_EQ(lock("a").holders, 2U);
  EXPECT_EQ(holders_.leases.items[lock("a").first_holder].holder_after, last);
}

TEST_F(HoldersTest, TheRecordOfALeaseIsTheOneItWasMadeFrom) {
  LeaseRecord record = sample();
  record.terms = {.ttl = Millis(1234), .delay = Millis(56), .max_hold = Millis(78'900)};
  record.waited_ms = 7;
  record.floor = record.token;
  record.granted = UnixMs{99};
  record.request = {};  // Kept by the table of requests.
  const Index locks[]{holders_.locks.find_or_add("a"), holders_.locks.find_or_add("b")};
  const Index lease = holders_.add_lease(record, locks, kNone);
  const LeaseRecord back = holders_.record_of(holders_.leases.items[lease]);
  EXPECT_EQ(back.terms, record.terms);
  std::string bytes, bytes_back;
  encode(record, bytes);
  encode(back, bytes_back);
  EXPECT_EQ(bytes_back, bytes);
}

TEST_F(HoldersTest, ALeaseOnPlainTermsNeedsNoExtra) {
  EXPECT_EQ(holders_.leases.items[hold("a", exclusive_)].extra, nullptr);
  EXPECT_NE(holders_.leases.items[hold("b", {.delay = Millis(1)})].extra, nullptr);
}

// --- Waiters -------------------------------------------------------------------------------------

TEST(Waiters, PositionIsThatOnTheLongestQueue) {
  LockTable locks(7);
  Waiters waiters(locks);
  const Index a = locks.find_or_add("a"), b = locks.find_or_add("b");
  const Index first = waiters.add(WaiterId{1}), second = waiters.add(WaiterId{2});
  waiters.join(first, b);
  waiters.join(second, a);
  waiters.join(second, b);
  EXPECT_EQ(waiters.position(first), 1U);
  EXPECT_EQ(waiters.position(second), 2U);
}

TEST(Waiters, LeavingFreesEveryPlaceAndEndsTheWait) {
  LockTable locks(7);
  Waiters waiters(locks);
  waiters.start(Tick{});
  const Index a = locks.find_or_add("a"), b = locks.find_or_add("b");
  const Index waiter = waiters.add(WaiterId{1});
  waiters.join(waiter, a);
  waiters.join(waiter, b);
  waiters.set_end(waiter, Tick(Millis(10)));
  std::vector<Index> left;
  waiters.leave_all(waiter, left);
  waiters.remove(waiter);
  EXPECT_EQ(left, (std::vector{a, b}));
  EXPECT_EQ(locks.items[a].waiters + locks.items[b].waiters, 0U);
  EXPECT_EQ(waiters.pop_ended(Tick(Millis(20))), kNone);
  EXPECT_EQ(waiters.find(WaiterId{1}), kNone);
}

// --- Changes -------------------------------------------------------------------------------------

TEST(Changes, AReplyRestsOnWhatWasChangedBeforeIt) {
  Changes changes;
  changes.reply(WaiterId{1}, Released{});
  changes.raise_token(Token{5});
  changes.reply(WaiterId{2}, Released{});
  changes.reply_at_once(WaiterId{3}, Released{});
  const auto& replies = changes.output().replies;
  EXPECT_EQ(replies[0].after, BatchId{});
  EXPECT_EQ(replies[1].after, BatchId{1});
  EXPECT_EQ(replies[2].after, BatchId{});
}

TEST(Changes, ABatchIsOpenThenTakenThenDurable) {
  Changes changes;
  Batch batch;
  EXPECT_EQ(changes.take_batch(batch), BatchId{});
  changes.erase_lease(Token{1});
  EXPECT_EQ(changes.last_batch(), BatchId{1});
  EXPECT_EQ(changes.take_batch(batch), BatchId{1});
  EXPECT_EQ(changes.last_batch(), BatchId{1});
  changes.mark_durable(BatchId{1});
  EXPECT_EQ(changes.last_batch(), BatchId{});
}

TEST(Changes, EveryBatchThatGrantsRecordsAndCoversTheLastToken) {
  Changes changes;
  LeaseRecord record = sample();
  changes.load_token(Token{32});
  record.token = changes.next_token();
  changes.put_lease(record);
  Batch batch;
  changes.take_batch(batch);
  EXPECT_EQ(batch.covered(), 33U);
  EXPECT_EQ(batch.operations(), 2U);  // The lease, and the last token.
  changes.erase_lease(record.token);
  changes.take_batch(batch);
  EXPECT_EQ(batch.operations(), 1U);
}

TEST(RestoreWait, StartsInFullAndEndsOnce) {
  RestoreWait wait;
  wait.start(Tick(Millis(5)));
  EXPECT_FALSE(wait.active()) << "the store was not restored";
  wait.load(Millis(100));
  wait.start(Tick(Millis(5)));
  EXPECT_EQ(wait.left(Tick(Millis(25))), Millis(80));
  EXPECT_EQ(wait.left(Tick(Millis(500))), Millis(0));
  wait.end();
  EXPECT_FALSE(wait.active());
}

}  // namespace
}  // namespace pawl::core
