// A history that was written and read again is judged as before, and what was planted in the
// file is found.
#include "sim/history_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "sim/checker.h"
#include "sim/simulation.h"

namespace pawl::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

History simulated(std::uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.storm_ms = 5000;
  plan.traced = true;
  return simulate(plan).history;
}

std::string wrong_with(const std::string& lines) {
  const auto history = history_from_json_lines("{\"kind\":\"history\"}\n" + lines);
  return history ? "" : history.error().detail;
}

TEST(HistoryJson, HistoryIsUnchangedAfterWriteAndRead) {
  std::size_t leaders = 0, raises = 0, effects = 0, restores = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const History history = simulated(seed);
    const std::string text = to_json_lines(history);
    const auto read = history_from_json_lines(text);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(to_json_lines(*read), text) << seed;
    EXPECT_EQ(check(*read), check(history)) << seed;
    EXPECT_EQ(read->attempts.size(), history.attempts.size());
    leaders += read->leaders.size();
    raises += read->raises.size();
    effects += read->effects.size();
    restores += read->restores.size();
  }
  EXPECT_GT(leaders, 0U);
  EXPECT_GT(raises, 0U);
  EXPECT_GT(effects, 0U);
  EXPECT_GT(restores, 0U);
}

TEST(HistoryJson, ViolationIsTheSameAfterWriteAndRead) {
  History history = simulated(3);
  ASSERT_THAT(check(history), IsEmpty());
  // Another client's write, behind a greater token.
  ASSERT_FALSE(history.effects.empty());
  Effect late = history.effects.back();
  late.token = Token{1};
  late.op = 77;
  late.changed = true;
  history.effects.push_back(late);
  const auto read = history_from_json_lines(to_json_lines(history));
  ASSERT_TRUE(read);
  EXPECT_FALSE(check(history).empty());
  EXPECT_EQ(check(*read), check(history));
}

TEST(HistoryJson, DuplicateTokenInTheFileIsFound) {
  const std::string attempt =
      R"(,"locks":["a"],"ttl_ms":1000,"asked_ns":10,"answered_ns":20,"token":7,"believed_until_ns":30})";
  const auto read = history_from_json_lines(
      "{\"kind\":\"history\"}\n" + (R"({"kind":"attempt","client":1,"request":"one")" + attempt) +
      "\n\n" + (R"({"kind":"attempt","client":2,"request":"two")" + attempt));
  ASSERT_TRUE(read) << read.error().detail;
  ASSERT_THAT(read->attempts, SizeIs(2));
  EXPECT_EQ(read->attempts[0].ended, kOpen);
  ASSERT_FALSE(check(*read).empty());
  EXPECT_THAT(check(*read).front(), StartsWith("P1: token 7 of client 1 and token 7 of client 2"));
}

TEST(HistoryJson, InvalidHistoryIsRefusedWithItsLine) {
  EXPECT_THAT(history_from_json_lines("").error().detail,
              HasSubstr("no line of the kind \"history\""));
  EXPECT_THAT(
      history_from_json_lines("{\"kind\":\"start\",\"at_ns\":1,\"last_token\":1}").error().detail,
      HasSubstr("comes first"));
  EXPECT_THAT(wrong_with("{\"kind\":\"history\"}"), HasSubstr("comes first"));
  EXPECT_THAT(wrong_with("nonsense"), StartsWith("line 2: "));
  EXPECT_EQ(wrong_with("[1]"), "line 2: not an object");
  EXPECT_EQ(wrong_with(R"({"kind":"story"})"), "line 2: \"story\" is no kind of record");
  EXPECT_EQ(wrong_with(R"({"kind":"renewal","token":3})"), "line 2: \"sent_ns\" is missing");
  EXPECT_EQ(wrong_with(R"({"kind":"renewal","token":3,"sent_ns":1,"okay":true})"),
            "line 2: \"okay\" is not known");
  EXPECT_EQ(wrong_with(R"({"kind":"renewal","token":-3,"sent_ns":1})"),
            "line 2: \"token\" is not what it should be");
  EXPECT_EQ(
      wrong_with(
          R"({"kind":"effect","resource":"r","effect":"burn","token":1,"verdict":"stale","at_ns":1})"),
      "line 2: \"effect\" is not what it should be");
}

int check_history(const std::string& arguments) {
  const int status =
      std::system((std::string(PAWL_CHECK_HISTORY) + " " + arguments + " >/dev/null 2>&1").c_str());
  return WEXITSTATUS(status);
}

TEST(HistoryJson, ExitCodeTellsWhetherAllPropertiesHold) {
  const std::string path = testing::TempDir() + "pawl_history.jsonl";
  const std::string good = to_json_lines(simulated(5));
  std::ofstream(path) << good;
  EXPECT_EQ(check_history(path), 0);
  EXPECT_EQ(check_history("--json - < " + path), 0);
  std::ofstream(path) << good << R"({"kind":"start","at_ns":99000000000000,"last_token":1})"
                      << "\n";
  EXPECT_EQ(check_history(path), 1);
  std::ofstream(path) << "{}\n";
  EXPECT_EQ(check_history(path), 65);
  EXPECT_EQ(check_history(path + ".missing"), 65);
  EXPECT_EQ(check_history(""), 64);
  EXPECT_EQ(check_history("--loud " + path), 64);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace pawl::sim
