#include "wire/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"
#include "wire/error_code.h"
#include "wire/reply_decoder.h"

namespace pawl::wire {
namespace {

const GrantReply kPlain{LeaseId{1, 2}, Token{34},     Token{34},
                        std::nullopt,  Millis(15000), Millis(0)};
const GrantReply kSlotted{LeaseId{3, 4}, Token{limits::kTokenMax}, Token{1}, 0,
                          Millis(100),   Millis(3600000)};

template <class Write>
Value sent(Protocol protocol, Write write) {
  std::string bytes;
  ReplyWriter reply(bytes, protocol);
  write(reply);
  DecodedReply decoded = ReplyDecoder().decode(bytes);
  EXPECT_EQ(decoded.status, DecodeStatus::kComplete);
  EXPECT_EQ(decoded.consumed, bytes.size());
  return std::move(decoded.value);
}

TEST(Replies, AGrantReadsBackAsWrittenInBothVersions) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    for (const GrantReply& grant : {kPlain, kSlotted}) {
      const Value value = sent(protocol, [&](ReplyWriter& reply) { write_grant(reply, grant); });
      const auto read = read_acquire(value);
      ASSERT_TRUE(read);
      EXPECT_EQ(std::get<GrantReply>(*read), grant);
    }
  }
}

TEST(Replies, AGrantOnTheWireHasAllSixKeys) {
  std::string bytes;
  ReplyWriter reply(bytes, Protocol::kResp3);
  write_grant(reply, kPlain);
  EXPECT_EQ(
      bytes,
      "%6\r\n$5\r\nlease\r\n$32\r\n00000000000000010000000000000002\r\n$5\r\ntoken\r\n:34\r\n$"
      "5\r\nfloor\r\n:34\r\n"
      "$4\r\nslot\r\n_\r\n$6\r\nttl_ms\r\n:15000\r\n$9\r\nwaited_ms\r\n:0\r\n");
}

TEST(Replies, NotObtainedAndQueuedDifferFromAGrant) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    const auto null =
        read_acquire(sent(protocol, [](ReplyWriter& reply) { reply.not_obtained(); }));
    ASSERT_TRUE(null);
    EXPECT_TRUE(std::holds_alternative<NotObtained>(*null));
    const auto queued =
        read_acquire(sent(protocol, [](ReplyWriter& reply) { write_queued(reply, {7}); }));
    ASSERT_TRUE(queued);
    EXPECT_EQ(std::get<QueuedReply>(*queued).position, 7u);
  }
}

TEST(Replies, AnErrorLineBecomesWhatTheCallerMayConclude) {
  const auto conclude = [](std::string_view line) {
    return read_acquire(Value::error(line)).error();
  };
  EXPECT_EQ(conclude("LOST granted as 33, released"),
            (Error{Code::kLeaseLost, "LOST granted as 33, released"}));
  EXPECT_EQ(conclude("UNCERTAIN").code, Code::kUnknown);
  EXPECT_EQ(conclude("LOADING reading").code, Code::kUnavailable);
  EXPECT_EQ(conclude("NOPERM").code, Code::kDenied);
  EXPECT_EQ(conclude("ERR TTL").code, Code::kInvalid);
  EXPECT_EQ(conclude("BUSY waiters").code, Code::kUnavailable);
  EXPECT_EQ(conclude("NEWCODE from the future").code, Code::kUnknown);
}

TEST(Replies, AnUnexpectedReplyLeavesTheOutcomeUnknown) {
  EXPECT_EQ(read_acquire(Value::of(1)).error().code, Code::kUnknown);
  Value map = sent(Protocol::kResp3, [](ReplyWriter& reply) { write_grant(reply, kPlain); });
  for (std::size_t i = 0; i < map.items.size(); i += 2) {
    Value damaged = map;
    damaged.items[i + 1] = Value::of("x");
    EXPECT_EQ(read_acquire(damaged).error().code, Code::kUnknown) << map.items[i].text;
    damaged = map;
    damaged.items[i] = Value::of("other");
    EXPECT_EQ(read_acquire(damaged).error().code, Code::kUnknown) << map.items[i].text;
  }
  map.items[3] = Value::of(static_cast<std::int64_t>(limits::kTokenMax) + 1);  // Hard case 15.
  EXPECT_EQ(read_acquire(map).error().code, Code::kUnknown);
  EXPECT_EQ(read_integer(Value::of("1")).error().code, Code::kUnknown);
  EXPECT_EQ(*read_integer(Value::of(1)), 1);
  EXPECT_EQ(read_integer(Value::error("LOST expired")).error().code, Code::kLeaseLost);
}

TEST(Replies, ThePushThatEndsAWaitReadsBackAsWritten) {
  const auto granted = read_wait_push(sent(Protocol::kResp3, [](ReplyWriter& reply) {
    write_wait_push(reply, WaitEvent::kGranted, "id", &kPlain);
  }));
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->request, "id");
  EXPECT_EQ(granted->grant, kPlain);
  for (const WaitEvent event :
       {WaitEvent::kTimeout, WaitEvent::kCancelled, WaitEvent::kSuperseded}) {
    const auto over = read_wait_push(sent(Protocol::kResp3, [&](ReplyWriter& reply) {
      write_wait_push(reply, event, "id", nullptr);
    }));
    ASSERT_TRUE(over);
    EXPECT_EQ(over->event, event);
    EXPECT_FALSE(over->grant);
  }
  EXPECT_FALSE(read_wait_push(Value::of("granted")));
}

TEST(ErrorCode, EveryCodeReadsBackFromItsWord) {
  for (std::size_t i = 0; i < kErrorCodes; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(error_code_from_text(to_text(code)), code);
    EXPECT_FALSE(meaning(code).empty());
  }
  EXPECT_EQ(error_code_from_text("lost"), std::nullopt);
  EXPECT_EQ(error_code_from_text(""), std::nullopt);
}

}  // namespace
}  // namespace pawl::wire
