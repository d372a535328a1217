// The protocol of a store that several pawld share, step by step: what is sent, and what each
// answer means. tests/sim runs it at large.
#include "store/cluster/cluster_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::store::cluster {
namespace {

using namespace std::chrono_literals;
using Outcome = SharedLog::WriteAnswer::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;

// Keeps what is sent; the test answers.
class ScriptedLog final : public SharedLog {
 public:
  void listen(Listener* listener) override { listener_ = listener; }
  void write(const Write& write) override { writes.push_back(write); }
  void read(const Read& read) override { reads.push_back(read.from); }
  [[nodiscard]] std::string_view kind() const override { return "scripted"; }

  void answer_write(Outcome outcome, std::string found = "") {
    listener_->written({outcome, std::move(found)});
  }
  void answer_read(const std::string& head, std::vector<NumberedEntry> entries = {}) {
    listener_->read({.known = true, .head = head, .entries = std::move(entries)});
  }
  void fail(std::string why) { listener_->failed({Code::kInvalid, std::move(why)}); }

  std::vector<Write> writes;
  std::vector<std::uint64_t> reads;

 private:
  Listener* listener_ = nullptr;
};

class KeptOutcomes final : public Sink {
 public:
  void durable(BatchId batch) override { durables.push_back(batch.value); }
  void failed(BatchId, const Error& error) override { failures.push_back(error.detail); }
  void deposed(const Active& active) override { deposed_by.push_back(active.address); }
  Result<void> followed(std::string_view operations) override {
    if (unreadable) return Error{Code::kInvalid, "it is of a later version"};
    ++entries;
    records.apply(operations);
    return {};
  }
  void follow_again() override { records = {}; }
  // What it has followed, without taking it away.
  [[nodiscard]] std::vector<std::string> followed_records() const {
    std::vector<std::string> texts;
    for (const auto& [key, value] : LogRecords(records).take()) {
      std::string text = key;
      texts.push_back(text.append("=").append(value));
    }
    return texts;
  }
  std::vector<std::uint64_t> durables;
  std::vector<std::string> failures, deposed_by;
  LogRecords records;
  int entries = 0;
  bool unreadable = false;
};

// Nothing is left to be visited: a standby has followed all of it.
class NoVisitor final : public Visitor {
 public:
  Result<void> record(std::string_view key, std::string_view /*value*/) override {
    ADD_FAILURE() << key << " is read again";
    return {};
  }
};

Batch batch_of(std::string_view key, std::string_view value, std::uint64_t covered = 0) {
  Batch batch;
  batch.put(key, value);
  batch.cover(covered);
  return batch;
}

class ClusterStoreTest : public testing::Test {
 protected:
  explicit ClusterStoreTest(ClusterSettings settings = {.address = "db1:7295", .jitter = 0ms})
      : store(std::move(settings), log, random, [this] { return now; }) {}

  // Reads what another pawld has written, and does what is due.
  void read(const std::string& head, std::vector<SharedLog::NumberedEntry> entries = {}) {
    step();
    log.answer_read(head, std::move(entries));
    step();
  }
  void step() {
    store.on_timer();
    store.pump(sink);
    if (sink.failures.empty()) store.pump(sink);  // What comes after it is known who is active.
    store.on_timer();                             // What pump() has made room for.
  }
  void advance(Nanos by) {
    now += by;
    step();
  }
  // The first pawld on an empty log.
  void become_active() {
    read("");
    ASSERT_EQ(log.writes.size(), 1U);
    log.answer_write(Outcome::kApplied);
    step();
    ASSERT_TRUE(store.is_active());
    ASSERT_TRUE(load());
  }
  Result<Loaded> load() {
    NoVisitor visitor;
    return store.load(visitor);
  }
  static Head other_head(std::uint64_t epoch = 7) {
    Head head;
    head.incarnation = Incarnation{3};
    head.epoch = epoch;
    head.n = 100 * epoch;
    head.writer = {11, 12};
    head.address = "db2:7295";
    return head;
  }

  // The head of another pawld that has taken over from this one.
  [[nodiscard]] Head taken_over(std::uint64_t epoch = 7) const {
    Head head = *decode_head(log.writes.back().head);
    head.epoch = epoch;
    head.n += 100;
    head.writer = {11, epoch};
    head.address = "db2:7295";
    if (log.writes.back().entry != 0) {  // Not applied.
      --head.last;
      --head.sequence;
      head.last_crc = 0;
    }
    return head;
  }
  // The next entry of another writer, and the head that fits it.
  static SharedLog::NumberedEntry append_to(Head& head, const Batch& batch) {
    ++head.n;
    EncodedEntry entry = encode_entry({.previous_crc = head.last_crc,
                                       .incarnation = head.incarnation,
                                       .epoch = head.epoch,
                                       .number = ++head.last,
                                       .sequence = ++head.sequence},
                                      "", batch.bytes());
    head.last_crc = entry.crc;
    return {head.last, std::move(entry.bytes)};
  }

  ScriptedLog log;
  SeededRandom random{1};
  Nanos now = 1000s;
  ClusterStore store;
  KeptOutcomes sink;
};

TEST_F(ClusterStoreTest, AnUnknownOutcomeIsSettledByTheSameBytes) {
  become_active();
  store.submit(batch_of("a", "1", 9), BatchId{1}, sink);
  log.answer_write(Outcome::kUnknown);
  step();
  EXPECT_EQ(log.writes.size(), 2U) << "not at once";
  advance(50ms);
  ASSERT_EQ(log.writes.size(), 3U);
  EXPECT_EQ(log.writes[2].head, log.writes[1].head);
  EXPECT_EQ(log.writes[2].expected, log.writes[1].expected);
  EXPECT_EQ(log.writes[2].bytes, log.writes[1].bytes);
  EXPECT_FALSE(store.ready());
  log.answer_write(Outcome::kRefused, log.writes[1].head);  // The first send was applied.
  step();
  EXPECT_THAT(sink.durables, ElementsAre(1U));
  EXPECT_TRUE(store.ready());
}

TEST_F(ClusterStoreTest, TheWindowCountsFromTheFirstSend) {
  become_active();
  advance(1s);  // A heartbeat.
  ASSERT_EQ(log.writes.size(), 2U);
  const Nanos sent = now;
  EXPECT_EQ(log.writes[1].entry, 0U);
  log.answer_write(Outcome::kUnknown);
  advance(2s);
  log.answer_write(Outcome::kApplied);
  EXPECT_LT(store.may_answer_until(), sent + 5s);
  EXPECT_GT(store.may_answer_until(), sent + 4800ms);
}

TEST_F(ClusterStoreTest, AnotherWriterInTheHeadMeansDeposed) {
  become_active();
  store.submit(batch_of("a", "1"), BatchId{1}, sink);
  log.answer_write(Outcome::kRefused, encode_head(taken_over()));
  EXPECT_EQ(store.may_answer_until(), Nanos(0));
  EXPECT_FALSE(store.ready());
  step();
  EXPECT_FALSE(store.is_active());
  EXPECT_THAT(sink.deposed_by, ElementsAre("db2:7295"));
  EXPECT_THAT(sink.durables, IsEmpty());
  EXPECT_THAT(sink.failures, IsEmpty());
}

TEST_F(ClusterStoreTest, AnEarlierHeadOfItsOwnMeansThatTheLogWasRestored) {
  become_active();
  const std::string before = log.writes[0].head;
  store.submit(batch_of("a", "1"), BatchId{1}, sink);
  log.answer_write(Outcome::kApplied);
  store.submit(batch_of("b", "1"), BatchId{2}, sink);
  log.answer_write(Outcome::kRefused, before);
  step();
  ASSERT_EQ(sink.failures.size(), 1U);
  EXPECT_NE(sink.failures[0].find("restore"), std::string::npos);
}

TEST_F(ClusterStoreTest, AStandbyTakesOverWhenTheHeadIsUnchangedForTheRoleTtl) {
  read(encode_head(other_head()));
  EXPECT_THAT(sink.deposed_by, ElementsAre("db2:7295")) << "that is who is active";
  advance(4900ms);
  EXPECT_THAT(log.writes, IsEmpty());
  Head moved = other_head();
  ++moved.n;
  log.answer_read(encode_head(moved));  // It still writes.
  advance(4900ms);
  EXPECT_THAT(log.writes, IsEmpty());
  advance(100ms);
  ASSERT_EQ(log.writes.size(), 1U);
  EXPECT_EQ(log.writes[0].expected, encode_head(moved));
  const auto claimed = decode_head(log.writes[0].head);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->epoch, 8U);
  EXPECT_EQ(claimed->address, "db1:7295");
}

TEST_F(ClusterStoreTest, AStandbyTakesOverAtOnceFromOneThatResigned) {
  Head head = other_head();
  head.state = HeadState::kResigned;
  read(encode_head(head));
  EXPECT_EQ(log.writes.size(), 1U);
}

TEST_F(ClusterStoreTest, OneThatResignsLeavesTheRoleToOthersFirst) {
  become_active();
  store.hand_over();
  step();
  ASSERT_EQ(log.writes.size(), 2U);
  EXPECT_EQ(decode_head(log.writes[1].head)->state, HeadState::kResigned);
  EXPECT_FALSE(store.ready());
  log.answer_write(Outcome::kApplied);
  step();
  EXPECT_FALSE(store.is_active());
  EXPECT_THAT(sink.deposed_by, ElementsAre("")) << "by nobody known yet";
  advance(4s);
  EXPECT_EQ(log.writes.size(), 2U);
  advance(1s);
  EXPECT_EQ(log.writes.size(), 3U) << "nobody else wanted it";
}

// Another one takes over as soon as it reads that; the answer may be late, or lost.
TEST_F(ClusterStoreTest, NothingIsAnsweredFromMemoryOnceAResignationWasSent) {
  become_active();
  EXPECT_GT(store.may_answer_until(), now);
  store.hand_over();
  step();
  ASSERT_EQ(decode_head(log.writes.back().head)->state, HeadState::kResigned);
  EXPECT_LE(store.may_answer_until(), now);
  log.answer_write(Outcome::kUnknown);
  step();
  EXPECT_LE(store.may_answer_until(), now);
}

TEST_F(ClusterStoreTest, ATakeoverReadsWhatIsMissingBeforeItServes) {
  Head head = other_head();
  head.covered = 40;
  const auto first = append_to(head, batch_of("a", "1"));
  const auto second = append_to(head, batch_of("b", "2"));
  read(encode_head(head), {first});  // As many as fit into one answer.
  EXPECT_EQ(log.reads.back(), 2U);
  advance(5s);
  ASSERT_EQ(log.writes.size(), 1U);
  log.answer_write(Outcome::kApplied);
  step();
  EXPECT_FALSE(store.is_active()) << "entry 2 is missing";
  log.answer_read(encode_head(head), {second});  // From before the takeover.
  step();
  EXPECT_FALSE(store.is_active());
  EXPECT_EQ(log.reads.back(), 2U);
  log.answer_read(log.writes[0].head, {second});
  step();
  ASSERT_TRUE(store.is_active());
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_THAT(sink.followed_records(), ElementsAre("a=1", "b=2"));
  EXPECT_EQ(loaded->epoch, 8U);
  EXPECT_EQ(loaded->sequence, 2U);
  EXPECT_EQ(loaded->high_water, 40U);
}

// However many records there are: what is left to do is one write.
TEST_F(ClusterStoreTest, ATakeoverByAWarmStandbyReadsNothingAgain) {
  Head head = other_head();
  std::vector<SharedLog::NumberedEntry> entries;
  for (const char* key : {"a", "b", "c"}) entries.push_back(append_to(head, batch_of(key, "1")));
  read(encode_head(head), entries);
  EXPECT_THAT(sink.followed_records(), ElementsAre("a=1", "b=1", "c=1")) << "while it stands by";
  EXPECT_EQ(sink.entries, 3);
  head.state = HeadState::kResigned;
  ++head.n;
  advance(500ms);
  log.answer_read(encode_head(head));
  step();
  ASSERT_EQ(log.writes.size(), 1U);
  log.answer_write(Outcome::kApplied);
  step();
  ASSERT_TRUE(store.is_active());
  ASSERT_TRUE(load());
  EXPECT_EQ(sink.entries, 3);
}

TEST_F(ClusterStoreTest, ADeposedOneForgetsBeforeItFollows) {
  become_active();
  store.submit(batch_of("a", "1"), BatchId{1}, sink);
  Head other = taken_over();
  const auto first = append_to(other, batch_of("b", "2"));
  log.answer_write(Outcome::kRefused, encode_head(other));
  store.on_timer();
  log.answer_read(encode_head(other), {first});
  store.pump(sink);
  EXPECT_EQ(sink.deposed_by.size(), 1U);
  EXPECT_THAT(sink.followed_records(), IsEmpty()) << "it is not told in the same call";
  store.pump(sink);
  EXPECT_THAT(sink.followed_records(), ElementsAre("b=2"));
}

TEST_F(ClusterStoreTest, TheNextEntriesAreReadWhenTheLastOnesWerePassedOn) {
  Head head = other_head();
  const auto first = append_to(head, batch_of("a", "1"));
  append_to(head, batch_of("b", "2"));
  store.on_timer();
  log.answer_read(encode_head(head), {first});
  store.on_timer();
  EXPECT_THAT(log.reads, ElementsAre(1U)) << "only so much is kept";
  store.pump(sink);
  store.pump(sink);
  store.on_timer();
  EXPECT_THAT(log.reads, ElementsAre(1U, 2U));
}

TEST_F(ClusterStoreTest, AStandbyThatCannotReadARecordEnds) {
  Head head = other_head();
  const auto first = append_to(head, batch_of("a", "1"));
  sink.unreadable = true;
  read(encode_head(head), {first});
  ASSERT_EQ(sink.failures.size(), 1U);
  EXPECT_EQ(sink.failures[0], "it is of a later version");
  advance(6s);
  EXPECT_THAT(log.writes, IsEmpty()) << "it must not take the role";
}

TEST_F(ClusterStoreTest, AStandbyBeginsAgainWhenWhatItWouldReadNextIsCleanedAway) {
  Head head = other_head();
  const auto first = append_to(head, batch_of("a", "1"));
  read(encode_head(head), {first});
  append_to(head, batch_of("b", "2"));
  const auto third = append_to(head, batch_of("c", "3"));
  head.first = 3;  // What is live there was carried into entry 3; here, nothing.
  advance(500ms);
  log.answer_read(encode_head(head), {third});
  ASSERT_THAT(sink.failures, IsEmpty());
  advance(5s);
  log.answer_write(Outcome::kApplied);
  step();
  ASSERT_TRUE(store.is_active());
  ASSERT_TRUE(load());
  EXPECT_THAT(sink.followed_records(), ElementsAre("c=3"));
}

TEST_F(ClusterStoreTest, AReadForACopyThatIsGivenUpIsMadeAgain) {
  Head head = other_head();
  const auto first = append_to(head, batch_of("a", "1"));
  read(encode_head(head), {first});
  advance(5s);  // It claims, and has asked for entry 2 and on.
  ASSERT_EQ(log.reads.back(), 2U);
  log.answer_write(Outcome::kApplied);
  step();
  ASSERT_TRUE(store.is_active());
  ASSERT_TRUE(load());
  Head other = *decode_head(log.writes[0].head);
  store.submit(batch_of("b", "2"), BatchId{1}, sink);
  ++other.epoch;
  const auto second = append_to(other, batch_of("c", "3"));
  log.answer_write(Outcome::kRefused, encode_head(other));
  log.answer_read(encode_head(other), {second});
  step();
  EXPECT_THAT(sink.failures, IsEmpty());
  EXPECT_EQ(log.reads.back(), 1U);
}

TEST_F(ClusterStoreTest, AnEntryThatIsMissingEndsTheStandby) {
  Head head = other_head();
  append_to(head, batch_of("a", "1"));
  read(encode_head(head));
  ASSERT_EQ(sink.failures.size(), 1U);
  EXPECT_NE(sink.failures[0].find("entry 1 of the shared log: it is missing"), std::string::npos);
}

TEST_F(ClusterStoreTest, AHeadThatIsGoneEndsTheStandby) {
  read(encode_head(other_head()));
  advance(500ms);
  log.answer_read("");
  advance(6s);
  EXPECT_THAT(log.writes, IsEmpty()) << "it must not create another store";
  EXPECT_FALSE(sink.failures.empty());
}

TEST_F(ClusterStoreTest, AHeadWithALowerNumberEndsTheStandby) {
  Head head = other_head();
  head.covered = 40;
  read(encode_head(head));
  head.covered = 30;
  ++head.epoch;
  ++head.n;
  advance(500ms);
  log.answer_read(encode_head(head));
  step();
  ASSERT_EQ(sink.failures.size(), 1U);
  EXPECT_NE(sink.failures[0].find("restored"), std::string::npos);
}

TEST_F(ClusterStoreTest, AReadFromBeforeARefusedTakeoverSaysNothingOfTheHead) {
  read("");  // It claims, and reads again.
  advance(500ms);
  ASSERT_EQ(log.writes.size(), 1U);
  ASSERT_EQ(log.reads.size(), 2U);
  log.answer_write(Outcome::kRefused, encode_head(other_head()));
  log.answer_read("");  // Taken before the other one wrote.
  step();
  EXPECT_THAT(sink.failures, IsEmpty());
  EXPECT_EQ(sink.deposed_by.back(), "db2:7295");
}

TEST_F(ClusterStoreTest, ALogThatCannotBeUsedEndsTheStore) {
  become_active();
  log.fail("permission denied");
  EXPECT_EQ(store.may_answer_until(), Nanos(0));
  EXPECT_FALSE(store.ready());
  step();
  EXPECT_THAT(sink.failures, ElementsAre("permission denied"));
}

TEST_F(ClusterStoreTest, ATakeoverThatIsConfirmedTooLateWaitsForAHeartbeat) {
  read(encode_head(other_head()));
  advance(5s);
  now += 6s;
  log.answer_write(Outcome::kApplied);
  store.pump(sink);
  EXPECT_FALSE(store.is_active());
  step();
  ASSERT_EQ(log.writes.size(), 2U);
  log.answer_write(Outcome::kApplied);
  step();
  EXPECT_TRUE(store.is_active());
}

TEST_F(ClusterStoreTest, ATakeoverThatIsRefusedLeavesAStandby) {
  read(encode_head(other_head(7)));
  advance(5s);
  ASSERT_EQ(log.writes.size(), 1U);
  log.answer_write(Outcome::kRefused, encode_head(other_head(8)));
  advance(4s);
  EXPECT_FALSE(store.is_active());
  EXPECT_EQ(log.writes.size(), 1U) << "the other one has its time";
}

TEST_F(ClusterStoreTest, OneThatIsElectedAgainUnseenReportsThatItWasDeposed) {
  become_active();
  store.submit(batch_of("a", "1"), BatchId{1}, sink);
  log.answer_write(Outcome::kRefused, encode_head(taken_over(2)));
  store.on_timer();  // Without pump(): its loop stands still.
  log.answer_read(encode_head(taken_over(2)));
  now += 6s;
  store.on_timer();
  log.answer_write(Outcome::kApplied);
  ASSERT_EQ(log.writes.size(), 3U);
  const std::size_t before = sink.deposed_by.size();
  store.pump(sink);
  EXPECT_EQ(sink.deposed_by.size(), before + 1);
  EXPECT_FALSE(store.is_active()) << "what was in memory is forgotten first";
  store.pump(sink);
  EXPECT_TRUE(store.is_active());
}

class CleaningTest : public ClusterStoreTest {
 protected:
  CleaningTest()
      : ClusterStoreTest({.address = "db1:7295",
                          .jitter = 0ms,
                          .gather = 1ms,
                          .cleaning = {.slack_bytes = 1 << 20, .entries_free = 3}}) {}

  void write(std::string_view key, std::string_view value) {
    store.submit(batch_of(key, value), BatchId{++batch_}, sink);
    log.answer_write(Outcome::kApplied);
    step();
  }
  [[nodiscard]] SharedLog::NumberedEntry written(std::size_t index) const {
    return {log.writes[index].entry, log.writes[index].bytes};
  }
  std::uint64_t batch_ = 0;
};

TEST_F(CleaningTest, TheNextBatchCarriesWhatIsLiveInTheOldestEntries) {
  become_active();
  const std::size_t reads = log.reads.size();
  write("a", "1");
  write("b", "1");
  write("b", "2");
  EXPECT_EQ(log.reads.size(), reads);
  write("c", "1");
  ASSERT_EQ(log.reads.size(), reads + 1) << "it reads the oldest entries back";
  EXPECT_EQ(log.reads.back(), 1U);
  log.answer_read(log.writes.back().head, {written(1), written(2), written(3)});
  write("d", "1");
  const SharedLog::Write& last = log.writes.back();
  EXPECT_EQ(last.delete_before, 4U);
  const auto entry = decode_entry(last.bytes);
  ASSERT_TRUE(entry);
  Batch live;
  live.put("a", "1");
  live.put("b", "2");
  EXPECT_EQ(entry->carried, live.bytes()) << "not the first b, which is overwritten";
  EXPECT_EQ(decode_head(last.head)->first, 4U);
}

TEST_F(CleaningTest, SeveralRequestsAreGatheredAfterABatchOfSeveral) {
  become_active();
  Batch batch;
  for (const char* key : {"a", "b", "c"}) batch.put(key, "1");
  store.submit(batch, BatchId{1}, sink);
  log.answer_write(Outcome::kApplied);
  step();
  EXPECT_FALSE(store.ready());
  EXPECT_EQ(store.next_timer(), now + 1ms);
  advance(1ms);
  EXPECT_TRUE(store.ready());
  write("d", "1");
  EXPECT_TRUE(store.ready()) << "nothing is to be gathered after one that was alone";
}

TEST_F(ClusterStoreTest, EachBatchIsOneEntry) {
  become_active();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    store.submit(batch_of("a", std::to_string(i)), BatchId{i}, sink);
    EXPECT_EQ(log.writes.back().entry, i);
    log.answer_write(Outcome::kApplied);
    step();
  }
  EXPECT_THAT(sink.durables, ElementsAre(1U, 2U, 3U));
}

}  // namespace
}  // namespace pawl::store::cluster
