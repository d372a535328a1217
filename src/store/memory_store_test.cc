#include "store/memory_store.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pawl::store {
namespace {

class RecordingSink final : public Sink {
 public:
  void durable(BatchId batch) override { done.push_back(batch.value); }
  void failed(BatchId /*batch*/, const Error& error) override { failure = error; }
  std::vector<std::uint64_t> done;
  std::optional<Error> failure;
};

class CollectingVisitor final : public Visitor {
 public:
  Result<void> record(std::string_view key, std::string_view value) override {
    state.emplace(key, value);
    return {};
  }
  std::map<std::string, std::string> state;
};

Batch put(std::string_view key, std::string_view value, std::uint64_t covered) {
  Batch batch;
  batch.put(key, value);
  batch.cover(covered);
  return batch;
}

TEST(MemoryStore, ABatchIsDurableAtOnce) {
  MemoryStore store(Incarnation{5});
  CollectingVisitor nothing;
  const auto fresh = store.load(nothing);
  ASSERT_TRUE(fresh);
  EXPECT_TRUE(fresh->fresh);
  RecordingSink answers;
  store.submit(put("a", "1", 3), BatchId{1}, answers);
  EXPECT_EQ(answers.done, (std::vector<std::uint64_t>{1}));
  ASSERT_TRUE(store.close());

  CollectingVisitor seen;
  const auto again = store.load(seen);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->incarnation, Incarnation{5});
  EXPECT_EQ(again->high_water, 3U);
  EXPECT_EQ(again->sequence, 1U);
  EXPECT_FALSE(again->fresh);
  EXPECT_TRUE(again->clean);
  EXPECT_EQ(seen.state, (std::map<std::string, std::string>{{"a", "1"}}));
}

TEST(MemoryStore, HeldBatchesBecomeDurableInOrderWhenReleased) {
  MemoryStore store(Incarnation{1});
  RecordingSink answers;
  store.hold();
  store.submit(put("a", "1", 1), BatchId{1}, answers);
  store.submit(put("a", "2", 2), BatchId{2}, answers);
  EXPECT_TRUE(answers.done.empty());
  EXPECT_TRUE(store.release_next());
  EXPECT_TRUE(answers.done.empty());
  store.pump(answers);
  EXPECT_EQ(answers.done, (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(store.records().at("a"), "1");
  store.release();
  store.pump(answers);
  EXPECT_EQ(answers.done, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_FALSE(store.release_next());
}

TEST(MemoryStore, ACrashLosesHeldBatchesButNotTheirNumbers) {
  MemoryStore store(Incarnation{1});
  RecordingSink answers;
  store.submit(put("a", "1", 1), BatchId{1}, answers);
  store.hold();
  store.submit(put("a", "2", 9), BatchId{2}, answers);
  store.crash();
  CollectingVisitor seen;
  const auto loaded = store.load(seen);
  EXPECT_EQ(seen.state.at("a"), "1");
  EXPECT_EQ(loaded->high_water, 9U);
  EXPECT_FALSE(loaded->clean);
}

TEST(MemoryStore, FailureAndLackOfRoomCanBeSimulated) {
  MemoryStore store(Incarnation{1});
  RecordingSink answers;
  store.set_room(false);
  EXPECT_FALSE(store.has_room());
  store.fail(Error{Code::kUnknown, "broken"});
  store.submit(put("a", "1", 1), BatchId{1}, answers);
  EXPECT_TRUE(answers.failure);
  EXPECT_TRUE(answers.done.empty());
}

}  // namespace
}  // namespace pawl::store
