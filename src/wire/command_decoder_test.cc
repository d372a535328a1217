#include "wire/command_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "wire/command_writer.h"

namespace pawl::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> words(const DecodedCommand& command) {
  return {command.args.begin(), command.args.end()};
}

// What a connection sees: every command of `bytes`, and the error that ended it, if one did.
struct Seen {
  std::vector<std::vector<std::string>> commands;
  std::string error;
  std::size_t left = 0;
  bool operator==(const Seen&) const = default;
};

// Feeds `bytes` in pieces of `piece`, each time from a buffer at a new address.
Seen feed(std::string_view bytes, std::size_t piece) {
  Seen seen;
  CommandDecoder decoder;
  std::string unread;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    unread.append(bytes.substr(at, piece));
    for (;;) {
      const auto buffer = std::make_unique<std::string>(unread);
      const DecodedCommand command = decoder.decode(*buffer);
      if (command.status == DecodeStatus::kNeedMore) break;
      if (command.status == DecodeStatus::kProtocolError) {
        seen.error = std::string(to_text(command.error)) + " " + std::string(command.message);
        return seen;
      }
      seen.commands.push_back(words(command));
      unread.erase(0, command.consumed);
    }
  }
  seen.left = unread.size();
  return seen;
}

std::string error_of(std::string_view bytes) {
  return feed(bytes, bytes.size()).error;
}

TEST(CommandDecoder, AnArrayOfBulkStringsIsACommand) {
  CommandDecoder decoder;
  const std::string bytes = "*2\r\n$5\r\nRENEW\r\n$3\r\na\r\n\r\nrest";
  const auto command = decoder.decode(bytes);
  ASSERT_EQ(command.status, DecodeStatus::kComplete);
  EXPECT_EQ(command.consumed, bytes.size() - 4);
  EXPECT_THAT(words(command), ElementsAre("RENEW", "a\r\n"));
  EXPECT_EQ(command.args[0].data(), bytes.data() + 8)
      << "arguments are views into the buffer, not copies";
}

TEST(CommandDecoder, ALineIsACommand) {
  EXPECT_THAT(feed("PING\r\n", 99).commands, ElementsAre(ElementsAre("PING")));
  EXPECT_THAT(feed("  set\ta   b \n", 99).commands, ElementsAre(ElementsAre("set", "a", "b")));
}

TEST(CommandDecoder, QuotedWordsKeepTheirSpacesAndEscapes) {
  EXPECT_THAT(feed(R"(BREAK a REASON "host is \"gone\"\x41\n" 'it\'s' "")"
                   "\r\n",
                   99)
                  .commands,
              ElementsAre(ElementsAre("BREAK", "a", "REASON", "host is \"gone\"A\n", "it's", "")));
  EXPECT_THAT(error_of("ECHO \"open\r\n"), HasSubstr("unbalanced quotes"));
  EXPECT_THAT(error_of("ECHO \"a\"b\r\n"), HasSubstr("unbalanced quotes"));
  EXPECT_THAT(error_of("ECHO \"ends in \\\r\n"), HasSubstr("unbalanced quotes"));
}

TEST(CommandDecoder, BlankLinesAndEmptyArraysAreEmptyCommands) {
  EXPECT_THAT(feed("\r\n*0\r\n\nPING\r\n", 99).commands,
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre("PING")));
}

TEST(CommandDecoder, PipelinedCommandsComeOutInOrderHoweverTheyAreSplit) {
  std::string bytes;
  append_command(bytes, {"ACQUIRE", "disk-7", "TTL", "15000"});
  bytes += "PING\r\n";
  append_command(bytes, {"ECHO", std::string_view("\0\r\n*3", 6)});
  append_command(bytes, {"", ""});
  bytes += "ECHO \"two words\"\r\n\r\n";
  const Seen whole = feed(bytes, bytes.size());
  ASSERT_EQ(whole.commands.size(), 6u);
  ASSERT_EQ(whole.error, "");
  for (std::size_t piece = 1; piece < bytes.size(); ++piece)
    EXPECT_EQ(feed(bytes, piece), whole) << piece;
}

TEST(CommandDecoder, EveryProperPrefixNeedsMore) {
  const std::string bytes = "*2\r\n$5\r\nRENEW\r\n$3\r\nabc\r\n";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CommandDecoder decoder;
    EXPECT_EQ(decoder.decode(std::string_view(bytes).substr(0, size)).status,
              DecodeStatus::kNeedMore)
        << size;
  }
}

TEST(CommandDecoder, MalformedLengthsEndTheConnection) {
  const std::vector<std::string> frames{"*\r\n",
                                        "*-1\r\n",
                                        "*+1\r\n",
                                        "*01\r\n",
                                        "*1x\r\n",
                                        "* 1\r\n",
                                        "*1\n$1\r\n",
                                        "*1\rx",
                                        "*1\r\n$-1\r\n",
                                        "*1\r\n$\r\n",
                                        "*1\r\n$ 1\r\na\r\n",
                                        "*99999999999\r\n",
                                        "*1\r\n$00\r\n\r\n",
                                        "*1\r\n$18446744073709551617\r\n"};
  for (const std::string& frame : frames)
    EXPECT_THAT(error_of(frame), HasSubstr("decimal length")) << frame;
}

TEST(CommandDecoder, MalformedFramesEndTheConnection) {
  EXPECT_THAT(error_of("*1\r\n:1\r\n"), HasSubstr("expected '$'"));
  EXPECT_THAT(error_of("*1\r\n*1\r\n"), HasSubstr("expected '$'"));
  EXPECT_THAT(error_of("*1\r\n$4\r\nPINGxx"), HasSubstr("expected CRLF"));
  EXPECT_THAT(error_of("*1\r\n$4\r\nPING\n\n"), HasSubstr("expected CRLF"));
}

TEST(CommandDecoder, SizesAreRefusedWhenTheyAreAnnounced) {
  EXPECT_THAT(error_of("*2049\r\n"), HasSubstr("TOOLONG a command takes at most 2048 arguments"));
  EXPECT_THAT(error_of("*1\r\n$65536\r\n"),
              HasSubstr("TOOLONG a command takes at most 65536 bytes"));
  EXPECT_THAT(error_of("*1\r\n$9999999999\r\n"), HasSubstr("TOOLONG"));
  EXPECT_EQ(error_of("*2048\r\n"), "");
}

TEST(CommandDecoder, AFrameOfExactlyTheLimitIsTakenAndOneByteMoreIsNot) {
  const std::string head = "*1\r\n$65522\r\n";  // 4 + 8 + 65522 + 2 = 65536
  ASSERT_EQ(head.size() + 65522 + 2, limits::kFrameMax);
  const std::string largest = head + std::string(65522, 'x') + "\r\n";
  EXPECT_EQ(feed(largest, largest.size()).commands.size(), 1u);
  EXPECT_THAT(error_of("*1\r\n$65523\r\n"), HasSubstr("TOOLONG"));

  const std::string line = "PING " + std::string(limits::kFrameMax - 6, 'x');
  EXPECT_EQ(feed(line + "\n", 1 << 20).commands.size(), 1u);
  EXPECT_THAT(error_of(line + "x\n"), HasSubstr("TOOLONG"));
  EXPECT_THAT(error_of(line + "xx"), HasSubstr("TOOLONG"))
      << "a line is not waited for beyond the limit";
}

TEST(CommandDecoder, ManySmallArgumentsCannotGrowPastTheFrame) {
  std::string bytes = "*2048\r\n";
  for (int i = 0; i < 2048; ++i) bytes += "$26\r\nabcdefghijklmnopqrstuvwxyz\r\n";
  EXPECT_THAT(error_of(bytes), HasSubstr("TOOLONG a command takes at most 65536 bytes"));
  // Whatever it waits for, it never needs a buffer larger than a frame.
  CommandDecoder decoder;
  EXPECT_EQ(decoder.decode(std::string_view(bytes).substr(0, limits::kFrameMax)).status,
            DecodeStatus::kProtocolError);
}

TEST(CommandDecoder, ALineOfTooManyWordsIsRefused) {
  std::string line;
  for (int i = 0; i < 2049; ++i) line += "a ";
  EXPECT_THAT(error_of(line + "\r\n"), HasSubstr("TOOLONG a command takes at most 2048 arguments"));
}

TEST(CommandDecoder, AnHttpRequestEndsTheConnectionBeforeItsLineIsComplete) {
  EXPECT_THAT(error_of("POST / HTTP/1.1\r\n"), HasSubstr("not HTTP"));
  EXPECT_THAT(error_of("post"), HasSubstr("not HTTP"));
  EXPECT_THAT(error_of("hOsT: localhost:7295"), HasSubstr("not HTTP"));
  const Seen get = feed("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 3);
  EXPECT_EQ(get.commands.size(), 1u);
  EXPECT_THAT(get.error, HasSubstr("not HTTP"));
  EXPECT_EQ(feed("HOSTS a\r\n", 99).error, "");
}

TEST(CommandDecoder, ATlsHandshakeEndsTheConnectionAtItsSecondByte) {
  EXPECT_THAT(error_of("\x16\x03"), HasSubstr("does not speak TLS"));
  const std::string hello("\x16\x03\x01\x02\x00\x01\x00", 7);
  EXPECT_THAT(feed(hello, 1).error, HasSubstr("does not speak TLS"));
}

TEST(CommandDecoder, TheNameOfTheNextCommandIsSeenWithoutDecodingIt) {
  EXPECT_EQ(peek_name("*2\r\n$5\r\nRENEW\r\n$3\r\nab"), "RENEW");
  EXPECT_EQ(peek_name("  ping \r\n"), "ping");
  EXPECT_EQ(peek_name("PING\n"), "PING");
  for (const char* unfinished : {"", "*", "*1\r\n", "*1\r\n$4\r", "*1\r\n$4\r\nPIN", "PIN"})
    EXPECT_EQ(peek_name(unfinished), "") << unfinished;
  for (const char* malformed : {"*x\r\n:1\r\n", "*1\r\n$x\r\nPING\r\n", "*1\r\n$\r\nPING\r\n",
                                "*1\r\n$99999999999\r\nPING\r\n"})
    EXPECT_EQ(peek_name(malformed), "") << malformed;
}

TEST(CommandDecoder, AfterALargeCommandTheNextOneIsReadAsUsual) {
  std::string bytes;
  append_mrenew(bytes, std::vector<LeaseId>(1024, LeaseId{1, 2}));
  append_command(bytes, {"PING"});
  const Seen seen = feed(bytes, 4096);
  ASSERT_EQ(seen.commands.size(), 2u);
  EXPECT_EQ(seen.commands[0].size(), 1026u);
  EXPECT_THAT(seen.commands[1], ElementsAre("PING"));
}

}  // namespace
}  // namespace pawl::wire
