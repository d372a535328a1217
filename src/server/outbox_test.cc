#include "server/outbox.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

struct OutboxTest : testing::Test {
  void add(std::string_view text, std::uint64_t after) {
    box.open().append(text);
    box.seal(BatchId{after});
  }
  std::string take(std::uint64_t durable) {
    const std::string bytes(box.ready(BatchId{durable}));
    box.sent(bytes.size());
    return bytes;
  }
  Outbox box;
};

TEST_F(OutboxTest, AReplyLeavesOnlyOnceItsBatchIsDurable) {
  add("grant", 7);
  EXPECT_EQ(take(6), "");
  EXPECT_EQ(take(7), "grant");
  EXPECT_TRUE(box.empty());
}

TEST_F(OutboxTest, RepliesNeverOvertakeOneAnother) {
  add("a", 2);
  add("b", 0);
  add("c", 3);
  add("d", 1);
  EXPECT_EQ(take(1), "");
  EXPECT_EQ(take(2), "ab");
  EXPECT_EQ(take(3), "cd");
}

TEST_F(OutboxTest, WhatIsAddedLaterDoesNotHoldBackWhatCouldLeave) {
  add("a", 0);
  add("b", 5);
  EXPECT_EQ(take(0), "a");
  add("c", 0);
  EXPECT_EQ(take(4), "");
  EXPECT_EQ(take(5), "bc");
}

TEST_F(OutboxTest, PartialSendsContinueWhereTheyStopped) {
  const std::string big(100'000, 'x');
  add(big, 1);
  add("tail", 2);
  std::string got;
  while (got.size() < big.size()) {
    const auto bytes = box.ready(BatchId{1});
    const std::size_t count = std::min<std::size_t>(bytes.size(), 3001);
    got.append(bytes.substr(0, count));
    box.sent(count);
  }
  EXPECT_EQ(got, big);
  EXPECT_EQ(box.size(), 4U);
  EXPECT_EQ(take(1), "");
  EXPECT_EQ(take(2), "tail");
}

}  // namespace
}  // namespace pawl::server
