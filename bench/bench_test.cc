// The benchmark's own instruments: a wrong one would make every figure wrong without a sign.
#include <gtest/gtest.h>

#include <string>

#include "bench/conversation.h"
#include "bench/measure.h"

namespace pawl::bench {
namespace {

const std::vector<std::string> kScriptHashes(5, std::string(40, 'a'));
const std::string kLease = "0123456789abcdef0123456789abcdef";

TEST(FrameSize, IsZeroForEveryProperPrefixOfAReplyAndTheWholeSizeForTheWhole) {
  const std::string reply = "*4\r\n$5\r\nlease\r\n$32\r\n" + kLease + "\r\n$5\r\ntoken\r\n:17\r\n";
  for (std::size_t size = 0; size < reply.size(); ++size) {
    EXPECT_EQ(frame_size(std::string_view(reply).substr(0, size)), 0U) << size;
  }
  EXPECT_EQ(frame_size(reply), reply.size());
  EXPECT_EQ(frame_size(reply + ":1\r\n"), reply.size());
}

TEST(FrameSize, KnowsNullsAndMapsOfBothProtocols) {
  EXPECT_EQ(frame_size("*-1\r\n"), 5U);
  EXPECT_EQ(frame_size("$-1\r\n"), 5U);
  EXPECT_EQ(frame_size("_\r\n"), 3U);
  EXPECT_EQ(frame_size("%1\r\n+a\r\n:1\r\n"), 12U);
}

TEST(FrameSize, RefusesWhatIsNotResp) {
  EXPECT_EQ(frame_size("HTTP/1.1 200 OK\r\n"), std::nullopt);
}

TEST(LeaseIn, FindsTheLeaseOfAGrantAndNothingInANull) {
  EXPECT_EQ(lease_in("*2\r\n$5\r\nlease\r\n$32\r\n" + kLease + "\r\n"), kLease);
  EXPECT_EQ(lease_in("*-1\r\n"), "");
}

TEST(Conversation, ALeaseGoesIntoTheRequestsThatNeedIt) {
  Conversation talk = conversation(Peer::kPawl, Workload::kCycle, "run", 1, {});
  EXPECT_FALSE(take_reply(talk, talk.round[0], "*-1\r\n"));
  EXPECT_TRUE(take_reply(talk, talk.round[0], "*2\r\n$5\r\nlease\r\n$32\r\n" + kLease + "\r\n"));
  EXPECT_NE(talk.round[1].request.find(kLease), std::string::npos);
  EXPECT_FALSE(take_reply(talk, talk.round[1], ":0\r\n"));
  EXPECT_TRUE(take_reply(talk, talk.round[1], ":1\r\n"));
}

TEST(Histogram, AddsUpWhatSeveralThreadsMeasured) {
  Histogram one, other;
  one.add(Nanos(10));
  other.add(Nanos(30));
  other.add(Nanos(40));
  one.add_all(other);
  EXPECT_EQ(one.total(), 3U);
  EXPECT_EQ(one.quantile(0.5), Nanos(30));
}

TEST(Conversation, OnlyAHandoffSharesItsLock) {
  const auto request = [](Workload workload, std::size_t connection) {
    const std::string text =
        conversation(Peer::kPawl, workload, "r", connection, {}).round[0].request;
    return text.substr(0, text.find("OWNER"));
  };
  EXPECT_NE(request(Workload::kCycle, 1), request(Workload::kCycle, 2));
  EXPECT_EQ(request(Workload::kHandoff, 1), request(Workload::kHandoff, 2));
}

TEST(Conversation, TheEchoServersGetTheVeryBytesThatPawlGets) {
  for (const Workload workload : {Workload::kCycle, Workload::kRenew}) {
    const Conversation pawl = conversation(Peer::kPawl, workload, "r", 7, {});
    const Conversation echo = conversation(Peer::kEcho, workload, "r", 7, {});
    ASSERT_EQ(pawl.round.size(), echo.round.size());
    for (std::size_t i = 0; i < pawl.round.size(); ++i)
      EXPECT_EQ(pawl.round[i].request, echo.round[i].request);
  }
}

TEST(Conversation, EveryRequestIsOneWholeCommand) {
  for (const Peer peer : {Peer::kPawl, Peer::kRedis}) {
    for (const Workload workload : {Workload::kCycle, Workload::kHandoff, Workload::kRenew}) {
      for (const Step& step : conversation(peer, workload, "r", 3, kScriptHashes).round) {
        EXPECT_EQ(frame_size(step.request), step.request.size()) << step.request;
      }
    }
  }
}

TEST(Histogram, QuantilesAreGoodToTwoPercent) {
  Histogram histogram;
  for (int i = 1; i <= 100'000; ++i) histogram.add(Nanos(i));
  EXPECT_NEAR(static_cast<double>(histogram.quantile(0.5).count()), 50'000, 1'000);
  EXPECT_NEAR(static_cast<double>(histogram.quantile(0.99).count()), 99'000, 2'000);
  EXPECT_EQ(Histogram().quantile(0.5), Nanos(0));
}

TEST(Histogram, HoldsTheLongestAndTheShortestTime) {
  Histogram histogram;
  histogram.add(Nanos(0));
  histogram.add(Nanos::max());
  EXPECT_EQ(histogram.quantile(0.5), Nanos(0));
  EXPECT_GT(histogram.quantile(1.0), Nanos::max() / 2);
}

}  // namespace
}  // namespace pawl::bench
