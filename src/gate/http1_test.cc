#include "gate/http1.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace pawl::gate {
namespace {

// 0: it is accepted.
int status_of(const std::string& head) {
  const auto parsed = parse_request(head);
  const auto* problem = std::get_if<http::Problem>(&parsed);
  return problem == nullptr ? 0 : problem->status;
}

std::string request(const std::string& headers, const std::string& line = "POST /a HTTP/1.1") {
  return line + "\r\nHost: a\r\n" + headers + "\r\n";
}

TEST(Http1, AnOrdinaryRequestIsRead) {
  const auto parsed = parse_request(
      "PUT /accounts/7?x=1 HTTP/1.1\r\nHost: bank\r\nContent-Length: 5\r\nX-A:  b c \r\n\r\n");
  const auto& head = std::get<RequestHead>(parsed);
  EXPECT_EQ(head.method, "PUT");
  EXPECT_EQ(head.target, "/accounts/7?x=1");
  EXPECT_EQ(head.body.type, Framing::Type::kLength);
  EXPECT_EQ(head.body.length, 5u);
  EXPECT_EQ(only_value(head.headers, "x-a"), "b c");
  EXPECT_TRUE(head.keep_alive);
}

TEST(Http1, AmbiguousFramingIsRefused) {
  EXPECT_EQ(status_of(request("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(request("Content-Length: 5\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(status_of(request("Content-Length: 5, 5\r\n")), 400);
  for (const char* length : {"+5", "-5", "0x5", "5 5", "", "1e3", "99999999999999999999"})
    EXPECT_EQ(status_of(request(std::string("Content-Length: ") + length + "\r\n")), 400) << length;
  for (const char* coding :
       {"identity", "gzip, chunked", "chunked, chunked", "\"chunked\"", "xchunked"})
    EXPECT_EQ(status_of(request(std::string("Transfer-Encoding: ") + coding + "\r\n")), 400);
  EXPECT_EQ(status_of(request("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
            400);
  EXPECT_EQ(status_of(request("Transfer-Encoding: Chunked\r\n")), 0);
}

TEST(Http1, MalformedHeadsAreRefused) {
  EXPECT_EQ(status_of(request("A : b\r\n")), 400);          // space before the colon
  EXPECT_EQ(status_of(request("A: b\r\n c: d\r\n")), 400);  // folded
  EXPECT_EQ(status_of(request("A: b\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(request("A: b\rc\r\n")), 400);
  EXPECT_EQ(status_of(request(std::string("A: b\0c\r\n", 8))), 400);
  EXPECT_EQ(status_of(request("no colon\r\n")), 400);
  EXPECT_EQ(status_of("POST /a HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(status_of(request("Host: b\r\n")), 400);      // two
  EXPECT_EQ(status_of("\r\n\r\n"), 400);
}

TEST(Http1, RequestLinesWithOneMeaningOnly) {
  EXPECT_EQ(status_of(request("", "POST  /a HTTP/1.1")), 400);
  EXPECT_EQ(status_of(request("", "POST /a b HTTP/1.1")), 400);
  EXPECT_EQ(status_of(request("", "POST http://a/b HTTP/1.1")), 400);
  EXPECT_EQ(status_of(request("", "POST /a#b HTTP/1.1")), 400);
  EXPECT_EQ(status_of(request("", "P(ST /a HTTP/1.1")), 400);
  EXPECT_EQ(status_of(request("", "POST /a HTTP/1.0")), 505);
  EXPECT_EQ(status_of(request("", "POST /a HTTP/2.0")), 505);
  EXPECT_EQ(status_of(request("", "CONNECT /a HTTP/1.1")), 405);
}

TEST(Http1, AnUpgradeIsRefused) {
  EXPECT_EQ(status_of(request("Upgrade: websocket\r\nConnection: Upgrade\r\n")), 501);
  EXPECT_EQ(status_of(request("Connection: keep-alive, upgrade\r\n")), 501);
}

TEST(Http1, OnlyOneExpectationIsKnown) {
  EXPECT_EQ(status_of(request("Expect: 100-continue\r\nContent-Length: 1\r\n")), 0);
  EXPECT_EQ(status_of(request("Expect: tea\r\n")), 417);
}

TEST(Http1, TooManyHeadersAreRefused) {
  std::string many;
  for (int i = 0; i < 200; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(request(many)), 400);
}

TEST(Http1, HeadersOfOneConnectionAreNotForwarded) {
  const Headers kept = end_to_end({{"Host", "a"},
                                   {"Connection", "close, X-Mine, Host, x-fencing-token"},
                                   {"X-Mine", "1"},
                                   {"X-Fencing-Token", "34"},
                                   {"Keep-Alive", "5"},
                                   {"Transfer-Encoding", "chunked"},
                                   {"Accept", "*/*"}});
  std::string names;
  for (const auto& each : kept) names += each.name + " ";
  EXPECT_EQ(names, "Host X-Fencing-Token Accept ");
}

// The payload; "error" when it is refused, "more" when its end is missing.
std::string read_chunked(std::string bytes, BodyReader::Reads reads = BodyReader::Reads::kRequest) {
  BodyReader body({Framing::Type::kChunked, 0}, reads);
  std::string payload;
  if (!body.read(bytes, payload)) return "error";
  return body.done() ? payload + "|" + bytes : "more";
}

TEST(Http1, ChunksArePutTogether) {
  EXPECT_EQ(read_chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET /next"),
            "abc0123456789|GET /next");
  EXPECT_EQ(read_chunked("3\r\nab"), "more");
}

TEST(Http1, OddChunksAreRefused) {
  for (const char* bytes :
       {"3;x=y\r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", " 3\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n", "-1\r\n", "\r\n", "3\nabc\n0\n\n", "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n", "fffffffffffffffff\r\n", "0\r\nTrailer: x\r\n\r\n"})
    EXPECT_EQ(read_chunked(bytes), "error") << bytes;
  EXPECT_EQ(read_chunked(std::string(1000, '0')), "error");
}

TEST(Http1, ExtensionsAndTrailersOfAnswersAreDropped) {
  EXPECT_EQ(read_chunked("3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n", BodyReader::Reads::kResponse),
            "abc|");
}

TEST(Http1, HowABodyIsCutMakesNoDifference) {
  const std::string bytes = "3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
  SeededRandom random(7);
  for (int round = 0; round < 1000; ++round) {
    BodyReader body({Framing::Type::kChunked, 0}, BodyReader::Reads::kRequest);
    std::string input, payload;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto count = 1 + random.below(5);
      input += bytes.substr(at, count);
      at += count;
      ASSERT_TRUE(body.read(input, payload));
    }
    ASSERT_EQ(payload, "abc0123456789abcdef");
    ASSERT_TRUE(body.done() && input.empty());
  }
}

TEST(Http1, AnswersAreRead) {
  const auto head = parse_response("HTTP/1.1 200 All right\r\nContent-Length: 3\r\n\r\n", false);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->reason, "All right");
  EXPECT_EQ(head->body.length, 3u);
  EXPECT_EQ(parse_response("HTTP/1.0 200\r\n\r\n", false)->body.type, Framing::Type::kUntilClose);
  EXPECT_EQ(parse_response("HTTP/1.1 204 x\r\n\r\n", false)->body.type, Framing::Type::kNone);
  EXPECT_EQ(parse_response("HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\n", true)->body.type,
            Framing::Type::kNone);
  EXPECT_FALSE(parse_response("HTTP/1.1 20 x\r\n\r\n", false));
  EXPECT_FALSE(parse_response("ICY 200 OK\r\n\r\n", false));
  EXPECT_FALSE(parse_response(
      "HTTP/1.1 200 x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false));
}

TEST(Http1, AnyBytesAreReadOrRefused) {
  SeededRandom random(1);
  const std::string parts[] = {
      "POST ",          "/a", " HTTP/1.1",         "\r\n",    "\n", ":", " ", "Host", "a",
      "Content-Length", "5",  "Transfer-Encoding", "chunked", "\r", ";"};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (std::uint64_t i = random.below(40); i > 0; --i)
      bytes += random.below(8) == 0 ? std::string(1, static_cast<char>(random.below(256)))
                                    : parts[random.below(std::size(parts))];
    bytes += "\r\n\r\n";
    const auto end = head_end(bytes);
    ASSERT_TRUE(end);
    (void)parse_request(std::string_view(bytes).substr(0, *end));
    (void)parse_response(std::string_view(bytes).substr(0, *end), false);
    (void)read_chunked(bytes);
  }
}

}  // namespace
}  // namespace pawl::gate
