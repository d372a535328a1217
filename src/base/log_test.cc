#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/rate_limited_log.h"

namespace pawl {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::string read_all() {
    std::string all(1 << 20, '\0');
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    std::size_t size = 0;
    for (ssize_t n; (n = ::read(ends[0], all.data() + size, all.size() - size)) > 0;)
      size += static_cast<std::size_t>(n);
    all.resize(size);
    return all;
  }
  int ends[2] = {-1, -1};
};

TEST(Log, EveryLineIsWrittenBeforeTheLogIsClosed) {
  Pipe pipe;
  open_log(LogFormat::kText, pipe.ends[1])->warning("one \"line\"");
  EXPECT_NE(pipe.read_all().find(" warning one \"line\"\n"), std::string::npos);
}

TEST(Log, JsonLinesEscapeTheMessage) {
  Pipe pipe;
  open_log(LogFormat::kJson, pipe.ends[1])->info("a \"b\"\n\\");
  EXPECT_NE(pipe.read_all().find(R"("level":"info","message":"a \"b\"\u000a\\"})"),
            std::string::npos);
}

TEST(Log, OnlyJsonLinesCarryFields) {
  Pipe json, text;
  for (const auto& [format, fd] :
       {std::pair(LogFormat::kJson, json.ends[1]), std::pair(LogFormat::kText, text.ends[1])}) {
    open_log(format, fd)
        ->info("BREAK of 7", {{"lock", "a\"b"}, {"token", std::uint64_t{7}}, {"user", ""}});
  }
  EXPECT_NE(
      json.read_all().find(R"("level":"info","message":"BREAK of 7","lock":"a\"b","token":7})"),
      std::string::npos);
  EXPECT_NE(text.read_all().find(" info BREAK of 7\n"), std::string::npos);
}

// What a client sent may be in it: of any length, and of any bytes.
TEST(Log, ALongMessageStaysValidJson) {
  Pipe pipe;
  open_log(LogFormat::kJson, pipe.ends[1])
      ->info(std::string(5000, '\n'),
             {{"lock", std::string(5000, '"')}, {"reason", std::string(5000, 'r')}});
  const std::string line = pipe.read_all();
  EXPECT_LT(line.size(), 4096U);
  EXPECT_TRUE(line.ends_with("rrr\"}\n")) << line;
  EXPECT_NE(line.find(R"(\u000a","lock":"\"\")"), std::string::npos) << line;
}

TEST(Log, BytesThatAreNotUtf8AreReplacedInAJsonLine) {
  Pipe pipe;
  open_log(LogFormat::kJson, pipe.ends[1])->info("\xc3\xa4 \xff \xe2\x82 \xed\xa0\x80");
  EXPECT_NE(pipe.read_all().find("\"\xc3\xa4 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd "
                                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
            std::string::npos);
}

// Hard case 25.
TEST(Log, AStoppedReaderBlocksNeitherWriterNorClose) {
  Pipe pipe;
  {
    const auto log = open_log(LogFormat::kText, pipe.ends[1]);
    for (std::size_t i = 0; i < 3 * kLogLinesMax; ++i)
      log->info("a line that fills the pipe long before the last one is written");
  }
  EXPECT_FALSE(pipe.read_all().empty());
}

TEST(RateLimitedLog, WritesAFewLinesPerPeriodAndThenTheNumberLeftOut) {
  struct Counting final : Log {
    void write(LogLevel, std::string_view line) override {
      ++count;
      last = line;
    }
    int count = 0;
    std::string last;
  } log;
  RateLimitedLog limited(log, {.lines = 3, .period = Nanos(100)});
  for (int i = 0; i < 3 + 5; ++i) limited.warning(Nanos(1), "strange");
  EXPECT_EQ(log.count, 3);
  limited.warning(Nanos(101), "strange");
  EXPECT_EQ(log.last, "strange (5 more since the last line)");
  limited.warning(Nanos(101), "strange");
  EXPECT_EQ(log.last, "strange");
}

}  // namespace
}  // namespace pawl
