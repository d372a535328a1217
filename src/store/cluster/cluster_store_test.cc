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
  void read(std::uint64_t from) override { reads.push_back(from); }
  [[nodiscard]] std::string_view kind() const override { return "scripted"; }

  void answer_write(Outcome outcome, std::string found = "") {
    listener_->written({outcome, std::move(found)});
  }
  void answer_read(const std::string& head, std::vector<std::string> entries = {}) {
    listener_->read({.known = true, .head = head, .entries = std::move(entries)});
  }

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
  std::vector<std::uint64_t> durables;
  std::vector<std::string> failures, deposed_by;
};

class KeptRecords final : public Visitor {
 public:
  Result<void> record(std::string_view key, std::string_view value) override {
    records.push_back(std::string(key) + "=" + std::string(value));
    return {};
  }
  std::vector<std::string> records;
};

Batch batch_of(std::string_view key, std::string_view value, std::uint64_t covered = 0) {
  Batch batch;
  batch.put(key, value);
  batch.cover(covered);
  return batch;
}

class ClusterStoreTest : public testing::Test {
 protected:
  // Reads what another pawld has written, and does what is due.
  void read(const std::string& head, std::vector<std::string> entries = {}) {
    step();
    log.answer_read(head, std::move(entries));
    step();
  }
  void step() {
    store.on_timer();
    store.pump(sink);
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
    KeptRecords visitor;
    ASSERT_TRUE(store.load(visitor));
  }
  static Head other_head(std::uint64_t epoch = 7, std::uint64_t last = 0) {
    Head head;
    head.incarnation = Incarnation{3};
    head.epoch = epoch;
    head.number = 100;
    head.writer[0] = 11;
    head.last = last;
    head.address = "db2:7295";
    return head;
  }

  ScriptedLog log;
  SeededRandom random{1};
  Nanos now = 1000s;
  ClusterStore store{{.address = "db1:7295", .jitter = 0ms}, log, random, [this] { return now; }};
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
  log.answer_write(Outcome::kRefused, encode(other_head()));
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
  read(encode(other_head()));
  EXPECT_THAT(sink.deposed_by, ElementsAre("db2:7295")) << "that is who is active";
  advance(4900ms);
  EXPECT_THAT(log.writes, IsEmpty());
  Head moved = other_head();
  ++moved.number;
  log.answer_read(encode(moved));  // It still writes.
  advance(4900ms);
  EXPECT_THAT(log.writes, IsEmpty());
  advance(100ms);
  ASSERT_EQ(log.writes.size(), 1U);
  EXPECT_EQ(log.writes[0].expected, encode(moved));
  const auto claimed = decode_head(log.writes[0].head);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->epoch, 8U);
  EXPECT_EQ(claimed->address, "db1:7295");
}

TEST_F(ClusterStoreTest, AStandbyTakesOverAtOnceFromOneThatResigned) {
  Head head = other_head();
  head.state = Head::State::kResigned;
  read(encode(head));
  EXPECT_EQ(log.writes.size(), 1U);
}

TEST_F(ClusterStoreTest, OneThatResignsLeavesTheRoleToOthersFirst) {
  become_active();
  store.resign();
  step();
  ASSERT_EQ(log.writes.size(), 2U);
  EXPECT_EQ(decode_head(log.writes[1].head)->state, Head::State::kResigned);
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
  store.resign();
  step();
  ASSERT_EQ(decode_head(log.writes.back().head)->state, Head::State::kResigned);
  EXPECT_LE(store.may_answer_until(), now);
  log.answer_write(Outcome::kUnknown);
  step();
  EXPECT_LE(store.may_answer_until(), now);
}

TEST_F(ClusterStoreTest, ATakeoverReadsWhatIsMissingBeforeItServes) {
  Head head = other_head(7, 1);
  head.covered = 40;
  read(encode(head), {std::string(batch_of("a", "1").bytes())});
  // Written meanwhile, and not read yet.
  head.last = 2;
  ++head.number;
  advance(500ms);
  log.answer_read(encode(head));
  advance(5s);
  ASSERT_EQ(log.writes.size(), 1U);
  log.answer_write(Outcome::kApplied);
  step();
  EXPECT_FALSE(store.is_active()) << "entry 2 is missing";
  EXPECT_EQ(log.reads.back(), 2U);
  log.answer_read(log.writes[0].head, {std::string(batch_of("b", "2").bytes())});
  step();
  ASSERT_TRUE(store.is_active());
  KeptRecords visitor;
  const auto loaded = store.load(visitor);
  ASSERT_TRUE(loaded);
  EXPECT_THAT(visitor.records, ElementsAre("a=1", "b=2"));
  EXPECT_EQ(loaded->epoch, 8U);
  EXPECT_EQ(loaded->sequence, 2U);
  EXPECT_EQ(loaded->high_water, 40U);
}

TEST_F(ClusterStoreTest, ATakeoverThatIsConfirmedTooLateWaitsForAHeartbeat) {
  read(encode(other_head()));
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
  read(encode(other_head(7)));
  advance(5s);
  ASSERT_EQ(log.writes.size(), 1U);
  log.answer_write(Outcome::kRefused, encode(other_head(8)));
  advance(4s);
  EXPECT_FALSE(store.is_active());
  EXPECT_EQ(log.writes.size(), 1U) << "the other one has its time";
}

TEST_F(ClusterStoreTest, OneThatIsElectedAgainUnseenReportsThatItWasDeposed) {
  become_active();
  store.submit(batch_of("a", "1"), BatchId{1}, sink);
  log.answer_write(Outcome::kRefused, encode(other_head(2)));
  store.on_timer();  // Without pump(): its loop stands still.
  log.answer_read(encode(other_head(2)));
  now += 6s;
  store.on_timer();
  log.answer_write(Outcome::kApplied);
  ASSERT_EQ(log.writes.size(), 3U);
  const std::size_t before = sink.deposed_by.size();
  store.pump(sink);
  EXPECT_EQ(sink.deposed_by.size(), before + 1);
  EXPECT_TRUE(store.is_active());
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

TEST(ClusterHead, IsUnchangedAfterEncodingAndDecoding) {
  Head head;
  head.state = Head::State::kResigned;
  head.incarnation = Incarnation{1};
  head.epoch = 2;
  head.number = 3;
  head.writer[0] = 4;
  head.writer[1] = 5;
  head.last = 6;
  head.covered = 7;
  head.address = "host:1";
  const std::string bytes = encode(head);
  const auto read = decode_head(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), bytes);
  EXPECT_TRUE(read->same_writer(head));
  EXPECT_FALSE(decode_head(bytes + "x"));
  EXPECT_FALSE(decode_head(bytes.substr(1)));
}

}  // namespace
}  // namespace pawl::store::cluster
