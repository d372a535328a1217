#include "server/event_ring.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/observation.h"

namespace pawl::server {
namespace {

constexpr Incarnation kOurs{7};

// A ring, and batches of grants to fill it with: the names are the tokens.
class EventRingTest : public testing::Test {
 protected:
  void append(std::size_t events, std::size_t name_size = 4) {
    core::Output output;
    ++batch.value;
    for (std::size_t i = 0; i < events; ++i) {
      core::Event event;
      event.after = batch;
      event.token = Token{++token};
      std::string name = std::to_string(token);
      name.resize(std::max(name.size(), name_size), '.');
      event.lock_at = static_cast<std::uint32_t>(output.text.size());
      event.lock_size = static_cast<std::uint32_t>(name.size());
      output.text += name;
      output.events.push_back(event);
    }
    ring.append(batch, output);
  }
  void add(std::size_t events, std::size_t name_size = 4) {
    append(events, name_size);
    ring.publish(batch);
  }

  EventRing ring{{.events = 8, .bytes = 64}};
  BatchId batch;
  std::uint64_t token = 0;
};

TEST_F(EventRingTest, AnEventIsHiddenUntilItsBatchIsDurable) {
  ring.start(kOurs, 0);
  append(2);
  append(1);
  EXPECT_EQ(ring.end(), 0U);
  ring.publish(BatchId{1});
  EXPECT_EQ(ring.end(), 2U);
  ring.publish(BatchId{2});
  EXPECT_EQ(ring.end(), 3U);
}

TEST_F(EventRingTest, NumbersGrowWithinABatchOverBatchesAndOverARestart) {
  ring.start(kOurs, 41);
  std::vector<std::uint64_t> numbers{ring.id_before(0).n};
  for (int i = 0; i < 3; ++i) add(2);
  add(0);
  add(1);
  for (auto p = ring.first(); p < ring.end(); ++p) numbers.push_back(ring.at(p).id.n);
  EventRing next;
  next.start(kOurs, 41 + 5);
  numbers.push_back(next.id_before(0).n);
  for (std::size_t i = 1; i < numbers.size(); ++i) EXPECT_LT(numbers[i - 1], numbers[i]);
  EXPECT_EQ(ring.at(0).id, (wire::EventId{kOurs, 42 * 65536}));
}

TEST_F(EventRingTest, EveryEventThatIsKeptCanBeResumedFromAndNothingElse) {
  ring.start(kOurs, 9);
  const wire::EventId origin = ring.id_before(0);
  EXPECT_EQ(ring.after(origin), 0U) << "nothing was missed";
  for (int round = 0; round < 20; ++round) {
    add(static_cast<std::size_t>(round % 4));
    for (auto p = ring.first(); p <= ring.end(); ++p) {
      const wire::EventId id = ring.id_before(p);
      EXPECT_EQ(ring.after(id), p);
      EXPECT_EQ(ring.after({Incarnation{8}, id.n}), std::nullopt) << "another incarnation";
      EXPECT_EQ(ring.after({kOurs, id.n + 5}), std::nullopt) << "no such event";
    }
  }
  EXPECT_EQ(ring.end() - ring.first(), 8U);
  EXPECT_EQ(ring.after(origin), std::nullopt) << "too old";
  EXPECT_EQ(ring.after({kOurs, 0}), std::nullopt);
}

TEST_F(EventRingTest, WhatIsKeptIsBoundedByBytesTooAndReadsBackWhole) {
  ring.start(kOurs, 0);
  for (int i = 0; i < 100; ++i) {
    add(1 + static_cast<std::size_t>(i % 3), 5 + static_cast<std::size_t>(i % 11));
    std::size_t bytes = 0;
    for (auto p = ring.first(); p < ring.end(); ++p) {
      const wire::EventView event = ring.at(p);
      bytes += event.lock.size();
      EXPECT_EQ(event.lock.substr(0, event.lock.find('.')), std::to_string(event.token.value));
      EXPECT_EQ(event.lock, ring.lock_at(p));
    }
    EXPECT_LE(bytes, 64U);
    EXPECT_EQ(ring.at(ring.end() - 1).token.value, token);
  }
}

TEST_F(EventRingTest, AnEventThatIsNotStoredTakesNoNumber) {
  ring.start(kOurs, 9);
  const wire::EventId origin = ring.id_before(0);
  core::Output output;
  output.events.emplace_back();
  output.events.back().kind = core::EventKind::kReleaseWanted;
  ring.append_unstored(BatchId{}, output);
  ring.publish(BatchId{});
  ASSERT_EQ(ring.end(), 1U);
  EXPECT_EQ(ring.at(0).kind, wire::EventKind::kReleaseWanted);
  EXPECT_EQ(ring.at(0).id, origin) << "it could come again after a restart";
  EXPECT_EQ(ring.after(origin), 0U) << "it is sent again";
  add(1);
  const wire::EventId stored = ring.at(1).id;
  EXPECT_EQ(stored.n, 10U * 65536) << "as if it had not been there";
  ring.append_unstored(BatchId{1}, output);
  ring.append_unstored(BatchId{1}, output);
  ring.publish(BatchId{1});
  EXPECT_EQ(ring.at(3).id, stored);
  EXPECT_EQ(ring.after(stored), 2U);
  add(1);
  EXPECT_GT(ring.at(4).id, stored);
  EXPECT_EQ(ring.after(ring.at(4).id), 5U);
}

TEST_F(EventRingTest, ABatchWithMoreThanCanBeKeptIsOneReset) {
  ring.start(kOurs, 0);
  add(1);
  add(9);
  ASSERT_EQ(ring.end(), 2U);
  EXPECT_EQ(ring.at(1).kind, wire::EventKind::kReset);
  EXPECT_EQ(ring.lock_at(1), "");
  EXPECT_EQ(ring.after(ring.at(1).id), 2U);
  add(1, 65);
  EXPECT_EQ(ring.at(2).kind, wire::EventKind::kReset);
  add(1);
  EXPECT_EQ(ring.at(3).kind, wire::EventKind::kGranted);
}

TEST(Observation, AnEventThatMatchesSeveralPrefixesIsTakenOnce) {
  Observation observation;
  observation.add("a", 0);
  observation.add("a/b", 0);
  EXPECT_TRUE(observation.take("a/b/c"));
  EXPECT_EQ(observation.next(), 1U);
  EXPECT_FALSE(observation.take("b"));
  EXPECT_TRUE(observation.take("")) << "concerns everyone";
}

TEST(Observation, APrefixWithAnOlderStartCatchesUpWithoutRepeating) {
  Observation observation;
  observation.add("a", 10);
  EXPECT_TRUE(observation.take("a1"));   // 10
  EXPECT_FALSE(observation.take("b1"));  // 11
  observation.add("", 9);
  EXPECT_EQ(observation.next(), 9U);
  EXPECT_TRUE(observation.take("a0")) << "from before the first began";
  EXPECT_FALSE(observation.take("a1")) << "told already";
  EXPECT_TRUE(observation.take("b1"));
  EXPECT_EQ(observation.next(), 12U);
  EXPECT_TRUE(observation.take("a2"));
  EXPECT_EQ(observation.next(), 13U);
  EXPECT_TRUE(observation.remove(""));
  EXPECT_FALSE(observation.remove(""));
  EXPECT_FALSE(observation.take("b2"));
  EXPECT_EQ(observation.prefixes(), 1U);
}

}  // namespace
}  // namespace pawl::server
