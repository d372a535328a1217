// The shared log: its bytes, its chain, its cleaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/batch.h"
#include "base/limits.h"
#include "base/random.h"
#include "store/cluster/log_copy.h"

namespace pawl::store::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Records = std::map<std::string, std::string>;

constexpr Incarnation kStore{0xabc};

Head full_head() {
  return {.state = HeadState::kResigned,
          .incarnation = kStore,
          .epoch = 3,
          .n = 99,
          .writer = {1, 2},
          .first = 5,
          .last = 9,
          .covered = 12345,
          .sequence = 77,
          .last_crc = 0xdeadbeef,
          .address = "db1.example:7295"};
}

void apply_to(Records& records, std::string_view operations) {
  while (!operations.empty()) {
    const auto operation = take_operation(operations);
    ASSERT_TRUE(operation);
    if (operation->put) {
      records[std::string(operation->key)] = operation->value;
    } else {
      records.erase(std::string(operation->key));
    }
  }
}

std::string put_of(std::string_view key, std::string_view value) {
  Batch batch;
  batch.put(key, value);
  return std::string(batch.bytes());
}

// --- Bytes ---------------------------------------------------------------------------------------

TEST(SharedLogFormat, AHeadIsReadAsItWasWritten) {
  const std::string bytes = encode_head(full_head());
  EXPECT_EQ(bytes.size(), kHeadBytes);
  const auto read = decode_head(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, full_head());
}

TEST(SharedLogFormat, EveryChangedBitOfAHeadIsNoticed) {
  const std::string bytes = encode_head(full_head());
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    EXPECT_FALSE(decode_head(changed)) << i;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_head(bytes.substr(0, size)));
}

TEST(SharedLogFormat, AnEntryIsReadAsItWasWritten) {
  const EntryHeader header{
      .previous_crc = 7, .incarnation = kStore, .epoch = 2, .number = 3, .sequence = 4};
  const EncodedEntry written = encode_entry(header, put_of("a", "1"), put_of("b", "2"));
  const auto read = decode_entry(written.bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->header, header);
  EXPECT_EQ(read->crc, written.crc);
  EXPECT_EQ(read->carried, put_of("a", "1"));
  EXPECT_EQ(read->operations, put_of("b", "2"));
  for (std::size_t i = 0; i < written.bytes.size() * 8; ++i) {
    std::string changed = written.bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    EXPECT_FALSE(decode_entry(changed)) << i;
  }
}

// --- The chain -----------------------------------------------------------------------------------

// A writer of entries, and a head that fits them.
class SharedLogTest : public testing::Test {
 protected:
  void write(std::string_view carried, std::string_view operations) {
    head_.last += 1;
    head_.sequence += 1;
    const EncodedEntry entry = encode_entry({.previous_crc = head_.last_crc,
                                             .incarnation = kStore,
                                             .epoch = head_.epoch,
                                             .number = head_.last,
                                             .sequence = head_.sequence},
                                            carried, operations);
    head_.last_crc = entry.crc;
    entries_[head_.last] = entry.bytes;
  }
  // The records, or what is wrong.
  Result<Records> load() {
    Records records;
    LogReader reader(head_);
    for (const auto& [number, value] : entries_) {
      const auto taken = reader.take(
          number, value, [&](std::string_view operations) { apply_to(records, operations); });
      if (!taken) return taken.error();
    }
    if (const auto complete = reader.check(head_); !complete) return complete.error();
    return records;
  }
  void expect_damage(std::string_view what) {
    const auto loaded = load();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().detail, HasSubstr(std::string(what)));
  }

  Head head_{.incarnation = kStore, .epoch = 1};
  std::map<std::uint64_t, std::string> entries_;
};

TEST_F(SharedLogTest, EntriesAreReadInOrder) {
  write("", put_of("a", "1"));
  write("", put_of("a", "2"));
  write("", put_of("b", "3"));
  const auto loaded = load();
  ASSERT_TRUE(loaded) << loaded.error().detail;
  EXPECT_EQ(*loaded, (Records{{"a", "2"}, {"b", "3"}}));
}

TEST_F(SharedLogTest, AnEmptyLogIsValid) {
  EXPECT_TRUE(load());
  head_.first = 8;
  head_.last = 7;
  head_.last_crc = 99;  // Of an entry that is deleted.
  EXPECT_TRUE(load());
}

TEST_F(SharedLogTest, ALogWhoseOldEntriesAreDeletedIsValid) {
  for (int i = 0; i < 5; ++i) write("", put_of("a", std::to_string(i)));
  head_.first = 4;
  entries_.erase(entries_.begin(), entries_.find(4));
  const auto loaded = load();
  ASSERT_TRUE(loaded) << loaded.error().detail;
  EXPECT_EQ(loaded->at("a"), "4");
}

TEST_F(SharedLogTest, AMissingEntryIsNamed) {
  for (int i = 0; i < 5; ++i) write("", put_of("a", std::to_string(i)));
  entries_.erase(3);
  expect_damage("entry 3 is missing");
}

TEST_F(SharedLogTest, AMissingLastEntryIsNamed) {
  for (int i = 0; i < 5; ++i) write("", put_of("a", std::to_string(i)));
  entries_.erase(5);
  expect_damage("entry 5 of the shared log: it is missing");
}

TEST_F(SharedLogTest, AnEntryOfAnotherHistoryIsNoticed) {
  for (int i = 0; i < 3; ++i) write("", put_of("a", std::to_string(i)));
  entries_[2] =
      encode_entry(
          {.previous_crc = 1, .incarnation = kStore, .epoch = 1, .number = 2, .sequence = 2}, "",
          put_of("a", "9"))
          .bytes;
  expect_damage("entry 2 of the shared log: it does not continue the entry before");
}

TEST_F(SharedLogTest, AnEntryThatMovedIsNoticed) {
  for (int i = 0; i < 3; ++i) write("", put_of("a", std::to_string(i)));
  entries_[2] = entries_[3];
  expect_damage("it says that it is entry 3");
}

TEST_F(SharedLogTest, AnEntryOfAnotherStoreIsNoticed) {
  write("", put_of("a", "1"));
  head_.incarnation = Incarnation{1};
  expect_damage("it is of another store");
}

// --- Cleaning ------------------------------------------------------------------------------------

// Random puts and deletions, cleaned as a writer would, loaded after each step.
TEST_F(SharedLogTest, CleaningLosesNothingAndBoundsTheLog) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    head_ = {.incarnation = kStore, .epoch = 1};
    entries_.clear();
    SeededRandom random(seed);
    // Bounds of production would be too far for a test.
    LogIndex index(head_.first, {.slack_bytes = 1 << 30, .entries_free = 100, .carried_max = 1000});
    Records wanted;
    std::uint64_t greatest = 0;
    for (int step = 0; step < 6000; ++step) {
      Batch batch;
      std::set<std::string> touched;
      for (std::uint64_t i = random.below(3); i < 3; ++i) {
        const std::string key = "key" + std::to_string(random.below(400));
        if (!touched.insert(key).second) continue;
        if (random.below(3) == 0) {
          batch.erase(key);
        } else {
          batch.put(key, std::string(random.below(200), 'v') + std::to_string(step));
        }
      }
      std::vector<SharedLog::NumberedEntry> oldest;
      CleaningPlan plan{.first = head_.first};
      if (index.wants_cleaning()) plan = index.plan();
      for (std::uint64_t number = head_.first; number < plan.first; ++number)
        oldest.push_back({number, entries_.at(number)});
      const auto made = carried_records(index, oldest, batch.bytes());
      ASSERT_TRUE(made);
      const std::string& carried = *made;
      write(carried, batch.bytes());
      index.add(head_.last, entries_.at(head_.last).size(), carried + std::string(batch.bytes()));
      index.drop_before(plan.first);
      head_.first = plan.first;
      entries_.erase(entries_.begin(), entries_.find(plan.first));
      apply_to(wanted, batch.bytes());
      greatest = std::max(greatest, index.entries());
      if (step % 500 == 0) {
        const auto loaded = load();
        ASSERT_TRUE(loaded) << loaded.error().detail;
        ASSERT_EQ(*loaded, wanted) << "seed " << seed << ", step " << step;
      }
    }
    EXPECT_LE(greatest, 110u);
    EXPECT_EQ(*load(), wanted);
  }
}

TEST(SharedLogIndex, CleaningBeginsWhenMoreThanHalfIsDead) {
  LogIndex index(1);
  const std::string large = put_of("a", std::string(1 << 20, 'x'));
  std::uint64_t number = 0;
  while (!index.wants_cleaning()) index.add(++number, large.size(), large);
  // Of records of a little more than 1 MiB: twice the live one, and 8 MiB of slack.
  EXPECT_EQ(number, 10u);
  EXPECT_EQ(index.live_bytes(), large.size());
}

TEST(SharedLogIndex, CleaningBeginsWhenThereAreTooManyEntries) {
  LogIndex index(1);
  std::uint64_t number = 0;
  while (!index.wants_cleaning()) {
    const std::string small = put_of("key" + std::to_string(number), "");
    index.add(++number, small.size(), small);
  }
  EXPECT_GT(number, 4096u);
  EXPECT_LT(number, 4200u);
}

TEST(SharedLogIndex, ThePlanTakesAtLeastOneEntryAndNeverTheLast) {
  LogIndex index(1, {.carried_max = 1000});
  const std::string one = put_of("a", std::string(5000, 'x'));
  const std::string two = put_of("b", std::string(10, 'x'));
  index.add(1, one.size(), one);
  EXPECT_EQ(index.plan().first, 1u);
  index.add(2, two.size(), two);
  EXPECT_EQ(index.plan().first, 2u);
  EXPECT_EQ(index.plan().carried_bytes, one.size());
  index.add(3, 0, "");
}

TEST(SharedLogIndex, ThePlanIsBounded) {
  LogIndex index(1, {.entries_max = 5});
  for (std::uint64_t number = 1; number <= 20; ++number) index.add(number, 0, "");
  EXPECT_EQ(index.plan().first, 6u);
  EXPECT_FALSE(index.must_be_cleaned());
}

}  // namespace
}  // namespace pawl::store::cluster
