// The small parts of the command line that can be wrong on their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/duration.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/reply.h"
#include "cli/shell_word.h"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ShellWord, IsReadByAShellAsOneWord) {
  EXPECT_EQ(shell_word("shop.db"), "shop.db");
  EXPECT_EQ(shell_word("my shop.db"), "'my shop.db'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Duration, IsAWholeNumberAndAUnit) {
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("15s"), 15s);
  EXPECT_EQ(*parse_duration("5m"), 5min);
  EXPECT_EQ(*parse_duration("1h"), 1h);
  EXPECT_EQ(*parse_duration("0s"), 0s);
}

TEST(Duration, BareNumberIsRefusedWithAHint) {
  const auto parsed = parse_duration("15");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().detail, HasSubstr("15s or 15ms"));
}

TEST(Duration, EverythingElseIsRefused) {
  for (const char* text : {"", "s", "-5s", "+5s", "1.5s", "5 s", "5S", "5d", "5sec", "1h30m",
                           "0x5s", "99999999999h", "99999999999999999999s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Duration, ReadsWellAtEverySize) {
  EXPECT_EQ(to_text(-1ms), "0ms");
  EXPECT_EQ(to_text(999ms), "999ms");
  EXPECT_EQ(to_text(15s), "15s");
  EXPECT_EQ(to_text(9341ms), "9.3s");
  EXPECT_EQ(to_text(252s), "4m12s");
  EXPECT_EQ(to_text(2h + 5min), "2h05m");
  EXPECT_EQ(to_text(76h), "3d04h");
}

TEST(Json, ItemsAreSeparatedByCommas) {
  Json json;
  json.object()
      .key("a")
      .number(1)
      .key("b")
      .array()
      .number(-2)
      .null()
      .boolean(true)
      .object()
      .end()
      .end()
      .end();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[-2,null,true,{}]})");
}

TEST(Json, EscapesWhatJsonForbids) {
  Json json;
  json.string("a\"b\\c\n\t\x01\x7f/é");
  EXPECT_EQ(json.text(), "\"a\\\"b\\\\c\\n\\t\\u0001\x7f/é\"");
}

TEST(Json, InvalidUtf8BecomesReplacementCharacters) {
  Json json;
  json.string("x\xff\xc3(\xed\xa0\x80y");
  EXPECT_EQ(json.text(), R"("x��(���y")");
}

TEST(Json, LargestTokenStaysExact) {  // Hard case 15.
  Json json;
  json.value(wire::Value::of(std::int64_t{9007199254740991}));
  EXPECT_EQ(json.text(), "9007199254740991");
}

TEST(Json, RepliesKeepTheirShape) {
  wire::Value map;
  map.kind = wire::Value::Kind::kMap;
  map.items = {wire::Value::of("lock"), wire::Value::of("disk"), wire::Value::of("token"),
               wire::Value::null()};
  wire::Value list;
  list.kind = wire::Value::Kind::kArray;
  list.items = {map, wire::Value::of(std::int64_t{7})};
  Json json;
  json.value(list);
  EXPECT_EQ(json.text(), R"([{"lock":"disk","token":null},7])");
}

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("\033[2Jroot\r\n"), "\\x1b[2Jroot\\x0d\\x0a");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // the one-character form of ESC [
  EXPECT_EQ(printable("\xff"
                      "ok é 日"),
            "\\xffok é 日");
}

TEST(Wrapped, BreaksAtSpacesAndCountsCharactersNotBytes) {
  EXPECT_EQ(wrapped("A  ", "one two three", 3, 10), "A  one two\n   three");
  EXPECT_EQ(wrapped("", "äöü äöü", 0, 7), "äöü äöü");
  EXPECT_EQ(wrapped("", "äöü äöü", 0, 6), "äöü\näöü");
  EXPECT_EQ(wrapped("> ", "overlong a", 2, 5), "> overlong\n  a");
  EXPECT_EQ(wrapped("> ", "", 2, 5), "> ");
}

TEST(Table, LinesUpByCharactersNotBytes) {
  Table table({"A", "B"});
  table.row({"é", "x"});
  table.row({"long", "y"});
  EXPECT_EQ(table.text(true), "A     B\né     x\nlong  y\n");
}

TEST(Suggestion, AMistypedVerbIsRecognised) {
  const std::vector<std::string> verbs{"run", "renew", "release", "acquire", "status"};
  EXPECT_EQ(closest_word("rn", verbs), "run");
  EXPECT_EQ(closest_word("realease", verbs), "release");
  EXPECT_EQ(closest_word("aqcuire", verbs), "acquire");
  EXPECT_EQ(closest_word("statsu", verbs), "status");
}

TEST(Suggestion, ADifferentWordSuggestsNothing) {
  EXPECT_EQ(closest_word("delete", {"run", "renew", "acquire"}), std::nullopt);
  EXPECT_EQ(closest_word("x", {"ls", "run"}), std::nullopt);
}

}  // namespace
}  // namespace pawl::cli
