#include "wire/reply_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "wire/reply_writer.h"

namespace pawl::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct SeenReplies {
  std::vector<std::string> replies;
  std::string error;
  std::size_t left = 0;
  bool operator==(const SeenReplies&) const = default;
};

SeenReplies feed_replies(std::string_view bytes, std::size_t piece, ReplyLimits limits = {}) {
  SeenReplies seen;
  ReplyDecoder decoder(limits);
  std::string unread;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    unread.append(bytes.substr(at, piece));
    for (;;) {
      const DecodedReply reply = decoder.decode(unread);
      unread.erase(0, reply.consumed);
      if (reply.status == DecodeStatus::kNeedMore) break;
      if (reply.status == DecodeStatus::kProtocolError) {
        seen.error = reply.message;
        return seen;
      }
      seen.replies.push_back(to_string(reply.value));
    }
  }
  seen.left = unread.size();
  return seen;
}

std::string one(std::string_view bytes) {
  const SeenReplies seen = feed_replies(bytes, bytes.size());
  return seen.replies.size() == 1 && seen.left == 0 ? seen.replies[0] : "refused: " + seen.error;
}
std::string reply_error(std::string_view bytes, ReplyLimits limits = {}) {
  return feed_replies(bytes, 1 << 20, limits).error;
}

TEST(ReplyDecoder, EveryTypeOfBothVersionsIsRead) {
  EXPECT_EQ(one("+OK\r\n"), "OK");
  EXPECT_EQ(one("-LOST expired\r\n"), "-LOST expired");
  EXPECT_EQ(one("!12\r\nLOST\r\nbroken\r\n"), "-LOST\r\nbroken");
  EXPECT_EQ(one(":-42\r\n"), "-42");
  EXPECT_EQ(one(":9223372036854775807\r\n"), "9223372036854775807");
  EXPECT_EQ(one("$5\r\na\r\nbc\r\n"), "\"a\r\nbc\"");
  EXPECT_EQ(one("$0\r\n\r\n"), "\"\"");
  EXPECT_EQ(one("$-1\r\n"), "null");
  EXPECT_EQ(one("*-1\r\n"), "null");
  EXPECT_EQ(one("_\r\n"), "null");
  EXPECT_EQ(one("#t\r\n"), "true");
  EXPECT_EQ(one(",1.5\r\n"), "1.500000");
  EXPECT_EQ(one("=9\r\ntxt:hello\r\n"), "\"hello\"");
  EXPECT_EQ(one("*2\r\n:1\r\n*0\r\n"), "[1, []]");
  EXPECT_EQ(one("~1\r\n+a\r\n"), "[a]");
  EXPECT_EQ(one("%1\r\n$1\r\na\r\n%0\r\n"), "{\"a\": {}}");
  EXPECT_EQ(one(">2\r\n+pawl\r\n:1\r\n"), "push [pawl, 1]");
}

TEST(ReplyDecoder, AttributesAreSkippedEverywhere) {
  EXPECT_EQ(one("|1\r\n+ttl\r\n:5\r\n:7\r\n"), "7");
  EXPECT_EQ(one("*2\r\n:1\r\n|1\r\n+a\r\n*1\r\n:9\r\n:2\r\n"), "[1, 2]");
  EXPECT_EQ(one("|0\r\n+x\r\n"), "x");
}

TEST(ReplyDecoder, RepliesComeOutInOrderHoweverTheyAreSplit) {
  const std::string bytes =
      "+OK\r\n%2\r\n$5\r\nlease\r\n$3\r\na\r\n\r\n+slot\r\n_\r\n>1\r\n*2\r\n:1\r\n$-1\r\n*-1\r\n|"
      "1\r\n+a\r\n+"
      "b\r\n*3\r\n*1\r\n*1\r\n"
      ":1\r\n#f\r\n=7\r\ntxt:abc\r\n-ERR no\r\n:12";
  const SeenReplies whole = feed_replies(bytes, bytes.size());
  EXPECT_EQ(whole.replies.size(), 6u) << whole.error;
  EXPECT_EQ(whole.left, 3u);
  for (std::size_t piece = 1; piece < bytes.size(); ++piece)
    EXPECT_EQ(feed_replies(bytes, piece), whole) << piece;
}

TEST(ReplyDecoder, UnsupportedTypesAreRefused) {
  EXPECT_THAT(reply_error("(3492890328409238509324850943850943825024385\r\n"),
              HasSubstr("not a type"));
  EXPECT_THAT(reply_error("hello\r\n"), HasSubstr("not a type"));
  EXPECT_THAT(reply_error("$?\r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error("*?\r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error(":\r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error(":9223372036854775808\r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error(":1 \r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error("$-2\r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error("%-1\r\n"), HasSubstr("expected a number"));
  EXPECT_THAT(reply_error("+OK\n"), HasSubstr("CRLF"));
  EXPECT_THAT(reply_error("\r\n"), HasSubstr("CRLF"));
  EXPECT_THAT(reply_error("$1\r\nabc"), HasSubstr("CRLF"));
  EXPECT_THAT(reply_error("#x\r\n"), HasSubstr("boolean"));
  EXPECT_THAT(reply_error("_x\r\n"), HasSubstr("null"));
  EXPECT_THAT(reply_error("=2\r\nab\r\n"), HasSubstr("not a type"));
  EXPECT_THAT(reply_error("*1\r\n>1\r\n:1\r\n"), HasSubstr("push inside"));
}

TEST(ReplyDecoder, DepthAndSizeAreBoundedBeforeAnythingIsAllocated) {
  std::string deep;
  for (int i = 0; i < 16; ++i) deep += "*1\r\n";
  EXPECT_EQ(reply_error(deep + ":1\r\n"), "");
  EXPECT_THAT(reply_error(deep + "*1\r\n"), HasSubstr("too deeply"));
  EXPECT_THAT(reply_error("*99999999999\r\n"), HasSubstr("larger than the limit"));
  EXPECT_THAT(reply_error("%4294967297\r\n"), HasSubstr("larger than the limit"));
  EXPECT_THAT(reply_error("$99999999999\r\n"), HasSubstr("larger than the limit"));
  EXPECT_THAT(reply_error("*18446744073709551615\r\n"), HasSubstr("larger than the limit"));
  EXPECT_THAT(reply_error("+" + std::string(70000, 'x')), HasSubstr("longer than 65536"));
  const ReplyLimits small{.depth = 16, .bytes = 1000};
  EXPECT_EQ(reply_error("$1000\r\n", small), "");
  EXPECT_THAT(reply_error("$1001\r\n", small), HasSubstr("larger than the limit"));
  EXPECT_THAT(reply_error("*2\r\n$600\r\n" + std::string(600, 'x') + "\r\n$600\r\n", small),
              HasSubstr("larger"));
}

TEST(Value, FindReadsMapsAndFlatPairsAlike) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    std::string bytes;
    ReplyWriter reply(bytes, protocol);
    reply.map(3);
    reply.field("state", "held");
    reply.field("token", 34);
    reply.field_null("slot");
    const Value value = ReplyDecoder().decode(bytes).value;
    EXPECT_EQ(value.find("state")->as_text(), "held");
    EXPECT_EQ(value.find("token")->as_integer(), 34);
    EXPECT_TRUE(value.find("slot")->is_null());
    EXPECT_EQ(value.find("held"), nullptr) << "a value is not a key";
    EXPECT_EQ(value.find("none"), nullptr);
  }
}

TEST(Value, TextThatIsAnIntegerReadsAsOne) {
  EXPECT_EQ(Value::of("42").as_integer(), 42);
  EXPECT_EQ(Value::of("42x").as_integer(), std::nullopt);
  EXPECT_EQ(Value::of("").as_integer(), std::nullopt);
  EXPECT_EQ(Value::null().as_integer(), std::nullopt);
  EXPECT_EQ(Value::error("ERR 1").as_text(), std::nullopt);
}

std::string written(Protocol protocol, void (*write)(ReplyWriter&)) {
  std::string out;
  ReplyWriter reply(out, protocol);
  write(reply);
  return out;
}

TEST(ReplyWriter, WritesWhatEachVersionOfTheProtocolReads) {
  const auto write = [](ReplyWriter& reply) {
    reply.null();
    reply.not_obtained();
    reply.boolean(true);
    reply.real(0.5);
    reply.verbatim("a:1");
    reply.map(1);
    reply.field("k", 7);
    reply.push(1);
    reply.ok();
  };
  EXPECT_EQ(written(Protocol::kResp3, write),
            "_\r\n_\r\n#t\r\n,0.5\r\n=7\r\ntxt:a:1\r\n%1\r\n$1\r\nk\r\n:7\r\n>1\r\n+OK\r\n");
  EXPECT_EQ(written(Protocol::kResp2, write),
            "$-1\r\n*-1\r\n:1\r\n$3\r\n0.5\r\n$3\r\na:1\r\n*2\r\n$1\r\nk\r\n:7\r\n*1\r\n+OK\r\n");
}

TEST(ReplyWriter, IntegersAreExactToTheirEnds) {
  EXPECT_EQ(written(Protocol::kResp3,
                    [](ReplyWriter& reply) {
                      reply.integer(std::numeric_limits<std::int64_t>::min());
                      reply.integer(std::numeric_limits<std::int64_t>::max());
                      reply.integer(0);
                    }),
            ":-9223372036854775808\r\n:9223372036854775807\r\n:0\r\n");
}

TEST(ReplyWriter, NoTextCanBreakOutOfItsLine) {
  EXPECT_EQ(written(Protocol::kResp2,
                    [](ReplyWriter& reply) {
                      reply.error(ErrorCode::kErr, "a\r\n+OK\r\n");
                      reply.simple("b\nc");
                      reply.error(ErrorCode::kLoading, "");
                    }),
            "-ERR a  +OK  \r\n+b c\r\n-LOADING\r\n");
}

}  // namespace
}  // namespace pawl::wire
