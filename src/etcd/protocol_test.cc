// The layers below the client: fields, messages, frames, verdicts, endpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "etcd/driver.h"
#include "etcd/grpc.h"
#include "etcd/http2_connection.h"
#include "etcd/messages.h"
#include "etcd/protobuf.h"
#include "etcd/testlib/fake_cluster.h"
#include "etcd/testlib/fake_server.h"
#include "etcd/verdict.h"

namespace pawl::etcd {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// --- Fields --------------------------------------------------------------------------------------

TEST(Protobuf, IntegersOfAnySizeAreReadAsWritten) {
  for (const std::int64_t value : {std::int64_t{1}, std::int64_t{127}, std::int64_t{128},
                                   std::int64_t{1} << 40, INT64_MAX, std::int64_t{-1}, INT64_MIN}) {
    std::string out;
    put_integer(out, 3, value);
    FieldReader in(out);
    const auto field = in.next();
    ASSERT_TRUE(field && field->is_integer(3));
    EXPECT_EQ(field->signed_integer(), value);
    EXPECT_FALSE(in.next());
    EXPECT_TRUE(in.ok());
  }
}

TEST(Protobuf, ZeroAndEmptyAreNotWrittenUnlessTheirPresenceCounts) {
  std::string out;
  put_integer(out, 1, 0);
  put_bytes(out, 1, "");
  EXPECT_EQ(out, "");
  put_member(out, 1, 0);
  put_message(out, 2, "");
  EXPECT_EQ(out, "\x08\0\x12\0"s);
}

TEST(Protobuf, MalformedFieldsAreRefused) {
  for (const std::string& bytes : {
           "\x00\x01"s,                                          // field number 0
           "\x0b"s,                                              // a group
           "\x08"s,                                              // an integer that is missing
           "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s,      // more than 64 bits
           "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s,  // more than ten bytes
           "\x0a\x02x"s,                                         // bytes that are missing
           "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,      // a length of 2^64 - 1
           "\x09\x01\x02"s,                                      // eight bytes that are missing
       }) {
    FieldReader in(bytes);
    EXPECT_FALSE(in.next());
    EXPECT_FALSE(in.ok()) << testing::PrintToString(bytes);
  }
}

// --- Messages ------------------------------------------------------------------------------------

TEST(EtcdMessages, ATransactionHasTheBytesOfItsDefinition) {
  const TxnRequest request{.compare = {ValueIs{"k", "v"}, CreateRevisionIs{"c", 0}},
                           .success = {PutRequest{"k", "w"}, DeleteRangeRequest{"a", "b"}},
                           .failure = {RangeRequest{"k"}}};
  EXPECT_EQ(encode(request),
            "\x0a\x08\x10\x03\x1a\x01k\x3a\x01v"        // compare: target VALUE, key, value
            "\x0a\x07\x10\x01\x1a\x01\x63\x28\x00"      // compare: target CREATE, key, revision 0
            "\x12\x08\x12\x06\x0a\x01k\x12\x01w"        // success: put
            "\x12\x08\x1a\x06\x0a\x01\x61\x12\x01\x62"  // success: delete_range
            "\x1a\x05\x0a\x03\x0a\x01k"s);              // failure: range
}

TEST(EtcdMessages, UnknownFieldsAreSkipped) {
  std::string bytes = applied_answer({.revision = 9});
  put_integer(bytes, 100, 1);
  put_bytes(bytes, 101, "text");
  bytes +=
      "\x31"
      "12345678"
      "\x35"
      "1234"s;  // fixed64 and fixed32 of field 6
  const auto answer = decode_txn(bytes);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->succeeded);
  EXPECT_EQ(answer->header.revision, 9);
}

TEST(EtcdMessages, AnOperationOfUnknownKindIsRefused) {
  std::string op, bytes;
  put_message(op, 9, "");
  put_message(bytes, 3, op);
  EXPECT_FALSE(decode_txn(bytes));
}

TEST(EtcdMessages, TooManyItemsAreRefused) {
  std::string bytes;
  for (std::size_t i = 0; i < limits::kEtcdItemsMax; ++i) put_message(bytes, 2, "");
  EXPECT_TRUE(decode_range(bytes));
  put_message(bytes, 2, "");
  const auto refused = decode_range(bytes);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("more than 65536"));
}

TEST(EtcdMessages, ThePrefixEndsAtTheNextKeyThatDoesNotHaveIt) {
  EXPECT_EQ(end_of_prefix("pawl/"), "pawl0");
  EXPECT_EQ(end_of_prefix("a\xff\xff"), "b");
  EXPECT_EQ(end_of_prefix("\xff"), "\0"s);
  EXPECT_EQ(end_of_prefix(""), "\0"s);
}

// --- Frames and status ---------------------------------------------------------------------------

TEST(GrpcFrames, MessagesAreFoundHoweverTheBytesAreCut) {
  std::string bytes;
  for (const auto& message : {"one"s, ""s, std::string(300, 'x')}) put_frame(bytes, message);
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    FrameReader reader(1000);
    std::vector<std::string> messages;
    for (std::size_t at = 0; at < bytes.size(); at += step)
      ASSERT_TRUE(reader.receive(std::string_view(bytes).substr(at, step), messages));
    EXPECT_THAT(messages, ElementsAre("one", "", std::string(300, 'x'))) << step;
    EXPECT_FALSE(reader.in_message());
  }
}

TEST(GrpcFrames, AMessageThatIsTooLargeIsRefusedBeforeItArrives) {
  FrameReader reader(1000);
  std::vector<std::string> messages;
  EXPECT_FALSE(reader.receive("\0\0\0\x03\xe9"s, messages));
  EXPECT_EQ(reader.error(), "a message of 1001 bytes; the limit is 1000");
}

TEST(GrpcFrames, ACompressedMessageIsRefused) {
  FrameReader reader(1000);
  std::vector<std::string> messages;
  EXPECT_FALSE(reader.receive("\1\0\0\0\0"s, messages));
}

TEST(GrpcStatusText, PercentSignsAreDecodedAndTheTextIsOneLine) {
  EXPECT_EQ(read_grpc_text("a%20b%0Ac%"), "a b?c%");
  EXPECT_EQ(read_grpc_text("%zz"), "%zz");
  EXPECT_EQ(read_grpc_text(std::string(5000, 'x')).size(), limits::kEtcdTextMax);
}

TEST(GrpcTimeout, IsBetweenAMicrosecondAndEightDigits) {
  EXPECT_EQ(grpc_timeout(Millis(1000)), "1000000u");
  EXPECT_EQ(grpc_timeout(Nanos(1)), "1u");
  EXPECT_EQ(grpc_timeout(Nanos(0)), "1u");
  EXPECT_EQ(grpc_timeout(std::chrono::hours(1)), "99999999u");
}

TEST(EtcdVerdict, OnlyTheseAnswersDecide) {
  for (std::uint32_t code = 0; code < 20; ++code) {
    const Verdict verdict = judge({code, "whatever"});
    const Verdict wanted = code == 0                ? Verdict::kAnswered
                           : code == 3 || code == 7 ? Verdict::kRefused
                           : code == 16             ? Verdict::kNeedsToken
                                                    : Verdict::kUnknown;
    EXPECT_EQ(verdict, wanted) << code;
  }
  EXPECT_EQ(judge({std::nullopt, ""}), Verdict::kUnknown);
  EXPECT_EQ(judge({3, "etcdserver: user name is empty"}), Verdict::kNeedsToken);
  EXPECT_EQ(judge({3, "etcdserver: revision of auth store is old"}), Verdict::kNeedsToken);
}

// --- Connections ---------------------------------------------------------------------------------

class Http2 : public testing::Test {
 protected:
  Http2() { exchange(); }
  void exchange() {
    for (int i = 0; i < 4; ++i) {
      server_.receive(connection_.take_output());
      EXPECT_TRUE(connection_.receive(server_.take_output()));
    }
  }
  // The only event.
  CallEvent event() {
    exchange();
    auto events = connection_.take_events();
    EXPECT_EQ(events.size(), 1u);
    return events.empty() ? CallEvent{} : std::move(events.back());
  }
  std::int32_t start() {
    EXPECT_TRUE(connection_.start({.path = "/a/b", .message = "ask"}));
    exchange();
    return server_.take_calls().at(0).stream;
  }

  Http2Connection connection_{{.authority = "db1:2379", .answer_max = 1000}};
  FakeServer server_;
};

TEST_F(Http2, ACallHasAMessageAndAStatus) {
  server_.answer(start(), "told");
  exchange();
  const auto events = connection_.take_events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].message, "told");
  EXPECT_TRUE(events[1].status.is(GrpcCode::kOk));
  EXPECT_EQ(connection_.calls(), 0u);
}

TEST_F(Http2, AStatusInTheFirstHeadersCounts) {
  server_.refuse(start(), "14", "no%20leader");
  EXPECT_EQ(to_text(event().status), "code 14: no leader");
}

TEST_F(Http2, AnotherServiceHasNoStatus) {
  server_.answer_raw(start(), "<html>", "404");
  const GrpcStatus status = event().status;
  EXPECT_FALSE(status.code);
  EXPECT_THAT(status.text, HasSubstr("HTTP status 404"));
}

TEST_F(Http2, AnAnswerThatIsTooLargeEndsTheCallWithoutAStatus) {
  server_.answer(start(), std::string(1001, 'x'));
  const GrpcStatus status = event().status;
  EXPECT_FALSE(status.code);
  EXPECT_THAT(status.text, HasSubstr("the limit is 1000"));
}

TEST_F(Http2, AnAnswerThatIsCutOffHasNoStatus) {
  server_.answer_raw(start(),
                     "\0\0\0\0\x05"
                     "ab"s);
  EXPECT_FALSE(event().status.code);
}

TEST_F(Http2, AMessageOfAnOpenStreamLargerThanTheWindowArrives) {
  const auto stream = connection_.start({.path = "/a/b", .message = "1", .stays_open = true});
  exchange();
  EXPECT_EQ(server_.take_calls().at(0).message, "1");
  connection_.send(*stream, std::string(300'000, 'x'));
  for (int i = 0; i < 10; ++i) exchange();
  EXPECT_EQ(server_.take_calls().at(0).message.size(), 300'000u);
}

TEST_F(Http2, AStreamThatStaysOpenEndsWhenTheServerEndsIt) {
  ASSERT_TRUE(connection_.start({.path = "/a/b", .message = "1", .stays_open = true}));
  exchange();
  server_.answer(server_.take_calls().at(0).stream, "told", "14", "no leader");
  exchange();
  const auto events = connection_.take_events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(to_text(events[1].status), "code 14: no leader");
}

TEST_F(Http2, BytesThatAreNoHttp2EndEveryCall) {
  start();
  static_cast<void>(connection_.receive("-ERR this is another protocol, and long enough\r\n"));
  EXPECT_FALSE(connection_.take_output().empty());  // It says why.
  EXPECT_TRUE(connection_.is_finished());
  const auto events = connection_.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_FALSE(events[0].status.code);
  EXPECT_FALSE(connection_.accepts_calls());
  EXPECT_FALSE(connection_.start({.path = "/a/b", .message = ""}));
}

TEST_F(Http2, AfterGoAwayNoCallBegins) {
  const std::int32_t stream = start();
  server_.go_away();
  exchange();
  EXPECT_FALSE(connection_.accepts_calls());
  EXPECT_FALSE(connection_.is_finished());
  server_.answer(stream, "told");
  server_.receive(connection_.take_output());
  static_cast<void>(connection_.receive(server_.take_output()));
  EXPECT_EQ(connection_.take_events().size(), 2u);
  EXPECT_TRUE(connection_.is_finished());
}

// --- Addresses -----------------------------------------------------------------------------------

TEST(EtcdEndpoints, HostsWithAndWithoutPortsAreRead) {
  const auto parsed = parse_endpoints("db1:2380, db2 ,[::1]:4001,[::1],127.0.0.1:1");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(*parsed, ElementsAre(EndpointAddress{"db1", 2380}, EndpointAddress{"db2", 2379},
                                   EndpointAddress{"::1", 4001}, EndpointAddress{"::1", 2379},
                                   EndpointAddress{"127.0.0.1", 1}));
}

TEST(EtcdEndpoints, WhatIsNoEndpointIsNamed) {
  for (const std::string text : {"", "db1:", "db1:0", "db1:65536", "db1:x", ":2379", "db1,,db2",
                                 "[::1", "http://db1:2379"}) {
    const auto parsed = parse_endpoints(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().detail, HasSubstr("HOST:PORT"));
  }
}

}  // namespace
}  // namespace pawl::etcd
