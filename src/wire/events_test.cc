#include "wire/events.h"

#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"
#include "wire/reply_decoder.h"

namespace pawl::wire {
namespace {

Value sent(Protocol protocol, const EventView& event) {
  std::string bytes;
  ReplyWriter reply(bytes, protocol);
  write_event(reply, event);
  DecodedReply decoded = ReplyDecoder().decode(bytes);
  EXPECT_EQ(decoded.status, DecodeStatus::kComplete);
  EXPECT_EQ(decoded.consumed, bytes.size());
  return std::move(decoded.value);
}

EventView broken() {
  EventView event;
  event.kind = EventKind::kBroken;
  event.id = {Incarnation{0xab}, 65536};
  event.lock = "a/b";
  event.token = Token{limits::kTokenMax};
  event.mode = "exclusive";
  event.owner = "me@host:1";
  event.how = "broken";
  event.reason = "host is gone";
  event.at = UnixMs{1'700'000'000'000};
  return event;
}

TEST(Events, AnEventReadsBackAsWrittenInBothVersions) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    const EventView event = broken();
    const Value frame = sent(protocol, event);
    EXPECT_EQ(frame.is_push(), protocol == Protocol::kResp3);
    const auto read = read_event(frame);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, event.kind);
    EXPECT_EQ(read->id, event.id);
    EXPECT_EQ(read->lock, event.lock);
    EXPECT_EQ(read->token, event.token);
    EXPECT_EQ(read->mode, event.mode);
    EXPECT_EQ(read->owner, event.owner);
    EXPECT_EQ(read->how, event.how);
    EXPECT_EQ(read->reason, event.reason);
    EXPECT_EQ(read->at, event.at);
  }
}

TEST(Events, EmptyFieldsAreLeftOut) {
  const Value frame = sent(Protocol::kResp3, EventView{});
  EXPECT_EQ(to_string(frame.items[4]), "{}");
  const auto read = read_event(frame);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, EventPush{});
}

TEST(Events, EveryKindReadsBackFromItsWord) {
  for (int i = 0; i <= static_cast<int>(EventKind::kReset); ++i) {
    EventView event = broken();
    event.kind = static_cast<EventKind>(i);
    const auto read = read_event(sent(Protocol::kResp3, event));
    ASSERT_TRUE(read) << i;
    EXPECT_EQ(read->kind, event.kind);
  }
}

TEST(Events, OtherFramesAreNotReadAsEvents) {
  const Value frame = sent(Protocol::kResp3, broken());
  for (std::size_t item = 0; item < 4; ++item) {
    Value damaged = frame;
    damaged.items[item] = Value::null();
    EXPECT_FALSE(read_event(damaged)) << item;
  }
  Value shorter = frame;
  shorter.items.pop_back();
  EXPECT_FALSE(read_event(shorter)) << "the end of a wait has four items";
  EXPECT_FALSE(read_event(Value::of("granted")));
}

TEST(Events, AnIdReadsBackAndNothingElseDoes) {
  const EventId id{Incarnation{0x0123456789abcdef}, 42};
  EXPECT_EQ(to_text(id), "0123456789abcdef-42");
  EXPECT_EQ(event_id_from_text(to_text(id)), id);
  for (const char* text : {"", "42", "0123456789abcdef", "0123456789abcdef-", "0123456789ABCDEF-42",
                           "0123456789abcdef-x", "0123456789abcdef-+1", "123456789abcdef-42",
                           "0123456789abcdef-1234567890123456789"}) {
    EXPECT_FALSE(event_id_from_text(text)) << text;
  }
}

}  // namespace
}  // namespace pawl::wire
